// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/requirements.h"

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {

absl::Status RefuseLayout(absl::string_view tensor, const MemoryDesc& desc) {
  return Unimplemented("does not take ", tensor, " as ", desc.ToString());
}

absl::Status RequireDirect(const ConvolutionDesc& desc) {
  if (desc.algorithm == ConvolutionAlgorithm::kWinograd) {
    return Unimplemented("is a direct convolution, Winograd was asked for");
  }
  if (desc.weights.format_kind() == FormatKind::kWinograd) {
    return Unimplemented("is a direct convolution, the weights are transformed");
  }
  return absl::OkStatus();
}

absl::Status RequireDirectF32(const ConvolutionDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.dst, desc.bias));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  return RequireDirect(desc);
}

absl::Status RequireF32OrBf16(const ConvolutionDesc& desc) {
  for (const MemoryDesc* tensor : {&desc.src, &desc.dst}) {
    if (tensor->data_type() != DataType::kBf16) ABSL_RETURN_IF_ERROR(RequireF32(*tensor));
  }
  return RequireF32(desc.bias);
}

absl::Status RequireTypesOfRow(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const bool writes_bf16 = request.facts.isa.Includes(cpu::Isa::kAvx512Bf16);
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias));
  ABSL_RETURN_IF_ERROR(RequireType(writes_bf16 ? DataType::kBf16 : DataType::kF32, {&desc.dst}));
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  if (writes_bf16 && desc.dst.IsPlain()) return RefuseLayout("dst", desc.dst);
  return RequireDirect(desc);
}

bool IsInteger(const ConvolutionDesc& desc) { return IsByte(desc.src.data_type()); }

absl::Status RequireInteger(const ConvolutionDesc& desc) {
  ABSL_RETURN_IF_ERROR(RequireIntegerTypes(desc.src, desc.weights, desc.bias, desc.dst));
  return RequireDirect(desc);
}

}  // namespace tilewire::convolution
