// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/convolution.h"

#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/pooled_destination.h"
#include "engine/primitives/creation.h"

namespace tilewire {

absl::string_view AlgorithmName(ConvolutionAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"auto", "direct", "winograd"};
  return kNames[static_cast<size_t>(algorithm)];
}

absl::Span<const Implementation<ConvolutionDesc>> ConvolutionImplementations() {
  using namespace convolution;  // NOLINT: the rows below name its functions
  constexpr bool kMaxPooling = true;
  static constexpr Implementation<ConvolutionDesc> kRows[] = {
      {"convolution/avx512_vnni_u8s8_depthwise", cpu::Isa::kAvx512Vnni,
       ResolveAvx512VnniU8S8Depthwise, CreateAvx512VnniU8S8Depthwise},
      {"convolution/avx512_vnni_u8s8_direct", cpu::Isa::kAvx512Vnni, ResolveAvx512VnniU8S8Direct,
       CreateAvx512VnniU8S8Direct},
      {"convolution/avx512_u8s8_depthwise", cpu::Isa::kAvx512, ResolveAvx512U8S8Depthwise,
       CreateAvx512U8S8Depthwise},
      {"convolution/avx512_u8s8_direct", cpu::Isa::kAvx512, ResolveAvx512U8S8Direct,
       CreateAvx512U8S8Direct},
      {"convolution/avx2_u8s8_depthwise", cpu::Isa::kAvx2, ResolveAvx2U8S8Depthwise,
       CreateAvx2U8S8Depthwise},
      {"convolution/avx2_u8s8_direct", cpu::Isa::kAvx2, ResolveAvx2U8S8Direct,
       CreateAvx2U8S8Direct},
      {"convolution/avx512_f32_depthwise", cpu::Isa::kAvx512, ResolveAvx512F32Depthwise,
       CreateAvx512F32Depthwise},
      {"convolution/avx512_f32_first_layer", cpu::Isa::kAvx512, ResolveAvx512F32FirstLayer,
       CreateAvx512F32FirstLayer},
      {"convolution/avx512_f32_winograd_4x3", cpu::Isa::kAvx512, ResolveAvx512F32Winograd4x3,
       CreateAvx512F32Winograd4x3, kMaxPooling},
      {"convolution/avx512_f32_winograd_2x3", cpu::Isa::kAvx512, ResolveAvx512F32Winograd2x3,
       CreateAvx512F32Winograd2x3, kMaxPooling},
      {"convolution/avx512_f32_direct", cpu::Isa::kAvx512, ResolveAvx512F32Direct,
       CreateAvx512F32Direct},
      {"convolution/avx2_f32_depthwise", cpu::Isa::kAvx2, ResolveAvx2F32Depthwise,
       CreateAvx2F32Depthwise},
      {"convolution/avx2_f32_first_layer", cpu::Isa::kAvx2, ResolveAvx2F32FirstLayer,
       CreateAvx2F32FirstLayer},
      {"convolution/avx2_f32_winograd_4x3", cpu::Isa::kAvx2, ResolveAvx2F32Winograd4x3,
       CreateAvx2F32Winograd4x3, kMaxPooling},
      {"convolution/avx2_f32_winograd_2x3", cpu::Isa::kAvx2, ResolveAvx2F32Winograd2x3,
       CreateAvx2F32Winograd2x3, kMaxPooling},
      {"convolution/avx2_f32_direct", cpu::Isa::kAvx2, ResolveAvx2F32Direct, CreateAvx2F32Direct},
      {"convolution/reference", cpu::Isa::kBaseline, ResolveReference, CreateReference,
       kMaxPooling},
  };
  return kRows;
}

absl::StatusOr<std::shared_ptr<const Primitive>> CreateConvolution(const ConvolutionDesc& desc,
                                                                   const Attributes& attributes,
                                                                   const CreateOptions& options) {
  ABSL_RETURN_IF_ERROR(convolution::Validate(desc));
  ABSL_RETURN_IF_ERROR(CheckChannelScales("convolution", desc.dst, attributes.output_scales));
  ABSL_RETURN_IF_ERROR(convolution::ValidateMaxPooling(desc, attributes));
  return CreateFirst(ConvolutionImplementations(), desc, attributes, options);
}

void AppendKey(const ConvolutionDesc& desc, std::string* key) {
  key->push_back(static_cast<char>(desc.prop_kind));
  key->push_back(static_cast<char>(desc.algorithm));
  for (const MemoryDesc* tensor : {&desc.src, &desc.weights, &desc.bias, &desc.dst})
    tensor->AppendKey(key);
  for (const Dims* values :
       {&desc.strides, &desc.dilations, &desc.padding_left, &desc.padding_right}) {
    key->push_back(static_cast<char>(values->size()));
    for (int64_t value : *values) key->append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
}

}  // namespace tilewire
