// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/quantize/quantize.h"

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/quantize/implementations.h"

namespace tilewire {
namespace quantize {
namespace {

bool Holds(DataType type, int32_t zero_point) {
  if (type == DataType::kU8) return zero_point >= 0 && zero_point <= 255;
  return type != DataType::kS8 || (zero_point >= -128 && zero_point <= 127);
}

absl::Status ValidateParams(const QuantizeDesc& desc) {
  if (desc.scales.size() != 1 && (desc.axis < 0 || desc.axis >= desc.src.rank())) {
    return absl::InvalidArgumentError(
        absl::StrCat("quantize: axis ", desc.axis, " of a tensor of rank ", desc.src.rank()));
  }
  const int64_t count = static_cast<int64_t>(desc.scales.size());
  if ((count != 1 && count != desc.src.dim(desc.axis)) ||
      desc.zero_points.size() != desc.scales.size()) {
    return absl::InvalidArgumentError(absl::StrCat("quantize: ", count, " scales and ",
                                                   desc.zero_points.size(), " zero points for ",
                                                   desc.src.ToString(), " along axis ", desc.axis));
  }
  for (float scale : desc.scales) {
    if (!(scale > 0))
      return absl::InvalidArgumentError(
          absl::StrCat("quantize: scale ", scale, " is not positive"));
  }
  for (int32_t zero_point : desc.zero_points) {
    if (!Holds(desc.dst.data_type(), zero_point)) {
      return absl::InvalidArgumentError(
          absl::StrCat("quantize: ", DataTypeName(desc.dst.data_type()),
                       " does not hold zero point ", zero_point));
    }
  }
  return absl::OkStatus();
}

absl::Status Validate(const QuantizeDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("quantize", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameDims("quantize: src", desc.src, "dst", desc.dst));
  return ValidateParams(desc);
}

}  // namespace
}  // namespace quantize

TILEWIRE_DEFINE_PRIMITIVE(Quantize, quantize,
                          {{"quantize/rows", cpu::Isa::kBaseline}, ResolveRows, CreateRows},
                          {{"quantize/reference", cpu::Isa::kBaseline, {.is_reference = true}},
                           ResolveReference,
                           CreateReference});

}  // namespace tilewire
