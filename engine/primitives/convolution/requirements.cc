// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/requirements.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewire::convolution {

absl::Status RequireDirectF32(const ConvolutionDesc& desc, const Attributes& attributes) {
  for (const MemoryDesc* tensor : {&desc.src, &desc.weights, &desc.dst, &desc.bias}) {
    if (tensor == &desc.bias && tensor->IsZero()) continue;
    if (tensor->data_type() != DataType::kF32) {
      return absl::UnimplementedError(
          absl::StrCat("takes f32 only, not ", DataTypeName(tensor->data_type())));
    }
  }
  if (!attributes.output_scales.IsDefault()) {
    return absl::UnimplementedError("output scales do not apply to f32");
  }
  if (desc.algorithm == ConvolutionAlgorithm::kWinograd) {
    return absl::UnimplementedError("is a direct convolution, Winograd was asked for");
  }
  return absl::OkStatus();
}

absl::StatusOr<MemoryDesc> OrPattern(const MemoryDesc& desc, absl::string_view pattern) {
  if (!desc.IsAny()) return desc;
  return MemoryDesc::CreatePattern(desc.dims(), desc.data_type(), pattern);
}

absl::string_view PlainPattern(int rank) {
  return absl::string_view("abcdefghijkl").substr(0, rank);
}

std::vector<ArgDesc> ArgsOf(const ConvolutionDesc& desc) {
  std::vector<ArgDesc> args = {
      {kArgSrc, desc.src}, {kArgWeights, desc.weights}, {kArgDst, desc.dst}};
  if (!desc.bias.IsZero()) args.push_back({kArgBias, desc.bias});
  return args;
}

}  // namespace tilewire::convolution
