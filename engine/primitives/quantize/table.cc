// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/quantize/implementations.h"
#include "engine/primitives/quantize/quantize.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace quantize {
namespace {

bool Holds(DataType type, int32_t zero_point) {
  if (type == DataType::kU8) return zero_point >= 0 && zero_point <= 255;
  return type != DataType::kS8 || (zero_point >= -128 && zero_point <= 127);
}

absl::Status ValidateParams(const QuantizeDesc& desc) {
  if (desc.scales.size() != 1 && (desc.axis < 0 || desc.axis >= desc.src.rank())) {
    return InvalidArgument("quantize: axis ", desc.axis, " of a tensor of rank ", desc.src.rank());
  }
  const int64_t count = static_cast<int64_t>(desc.scales.size());
  if ((count != 1 && count != desc.src.dim(desc.axis)) ||
      desc.zero_points.size() != desc.scales.size()) {
    return InvalidArgument("quantize: ", count, " scales and ", desc.zero_points.size(),
                           " zero points for ", desc.src.ToString(), " along axis ", desc.axis);
  }
  const bool gives_integers = IsByte(desc.dst.data_type());
  if (!desc.shifts.empty() && (gives_integers || desc.shifts.size() != desc.scales.size())) {
    return InvalidArgument("quantize: ", desc.shifts.size(), " shifts of ", desc.dst.ToString(),
                           ", ", count, " scales");
  }
  for (float scale : desc.scales) {
    if (!(scale > 0)) return InvalidArgument("quantize: scale ", scale, " is not positive");
  }
  for (int32_t zero_point : desc.zero_points) {
    if (!Holds(desc.dst.data_type(), zero_point)) {
      return InvalidArgument("quantize: ", DataTypeName(desc.dst.data_type()),
                             " does not hold zero point ", zero_point);
    }
  }
  return absl::OkStatus();
}

// dst holds src at the place that the padding gives.
absl::Status ValidateRange(const QuantizeDesc& desc) {
  const int rank = desc.src.rank(), padded = static_cast<int>(desc.padding_left.size());
  bool fits = desc.range.dims() == Dims{2} && desc.range.data_type() == DataType::kF32 &&
              desc.range.IsPlain() && desc.range.stride(0) == 1 && desc.scales.empty() &&
              desc.zero_points.empty() && desc.shifts.empty() && desc.dst.rank() == rank &&
              padded <= rank;
  for (int d = 0; fits && d < rank; ++d) {
    const int64_t left = d < rank - padded ? 0 : desc.padding_left[d - (rank - padded)];
    const int64_t larger = desc.dst.dim(d) - desc.src.dim(d);
    fits = left >= 0 && (d < rank - padded ? larger == 0 : larger >= left);
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("quantize: range ", desc.range.ToString(), ", padding ",
                         DimsToString(desc.padding_left), ", src ", desc.src.ToString(),
                         " and dst ", desc.dst.ToString(), " do not fit");
}

absl::Status Validate(const QuantizeDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("quantize", desc.src, desc.dst));
  if (!desc.range.IsZero()) return ValidateRange(desc);
  ABSL_RETURN_IF_ERROR(CheckSameDims("quantize: src", desc.src, "dst", desc.dst));
  return ValidateParams(desc);
}

}  // namespace
}  // namespace quantize

std::vector<QuantizeDesc> QuantizeProbes(DataType type) {
  std::vector<QuantizeDesc> descs;
  const MemoryDesc range = probes::Tagged({2}, DataType::kF32, "x");
  for (DataType to : {DataType::kU8, DataType::kF32}) {
    for (absl::string_view tag : probes::kImageTags) {
      const Dims dims = {2, 32, 8, 8};
      descs.push_back(QuantizeDesc{
          probes::Tagged(dims, type, tag), probes::Tagged(dims, to, tag), 1, {0.5f}, {3}});
      descs.push_back(QuantizeDesc{.src = probes::Tagged(dims, type, tag),
                                   .dst = probes::Tagged(dims, to, tag),
                                   .axis = 0,
                                   .scales = {},
                                   .zero_points = {},
                                   .range = range});
    }
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(
    Quantize, quantize,
    {kAvx512AndAvx2, {{"dense", ResolveByRange, CreateByRange, {.algorithm = kByRange}}}},
    {kAvx512AndAvx2, {{"channels", ResolveChannels, CreateChannels, {.algorithm = kKnownScales}}}},
    {kAnyCpu, {{"rows", ResolveRows, CreateRows, {.algorithm = kKnownScales}}}});

}  // namespace tilewire
