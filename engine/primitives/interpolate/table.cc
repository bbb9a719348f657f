// SPDX-License-Identifier: Apache-2.0
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/interpolate/implementations.h"
#include "engine/primitives/interpolate/interpolate.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace interpolate {
namespace {

absl::Status ValidateTaps(const InterpolateDesc& desc) {
  const int64_t src_size = desc.src.dim(desc.axis), dst_size = desc.dst.dim(desc.axis);
  const std::optional<int64_t> count =
      desc.taps < 1 ? std::nullopt : CheckedMul(desc.taps, dst_size);
  if (!count || static_cast<int64_t>(desc.indices.size()) != *count ||
      desc.weights.size() != desc.indices.size()) {
    return InvalidArgument("interpolate: ", desc.indices.size(), " indices and ",
                           desc.weights.size(), " weights for ", desc.taps, " taps of each of ",
                           dst_size, " elements");
  }
  for (int64_t index : desc.indices) {
    if (index >= 0 && index < src_size) continue;
    return InvalidArgument("interpolate: index ", index, " of a source of ", src_size);
  }
  return absl::OkStatus();
}

absl::Status Validate(const InterpolateDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("interpolate", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckAxis("interpolate", desc.axis, desc.src));
  Dims dims = desc.src.dims();
  if (desc.dst.rank() == desc.src.rank()) dims[desc.axis] = desc.dst.dim(desc.axis);
  if (dims == desc.dst.dims()) return ValidateTaps(desc);
  return InvalidArgument("interpolate along axis ", desc.axis, ": src is ", desc.src.ToString(),
                         ", dst ", desc.dst.ToString());
}

}  // namespace
}  // namespace interpolate

std::vector<InterpolateDesc> InterpolateProbes(DataType type) {
  std::vector<InterpolateDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    descs.push_back(InterpolateDesc{probes::Tagged({2, 32, 2, 8}, type, tag),
                                    probes::Tagged({2, 32, 3, 8}, type, tag),
                                    2,
                                    2,
                                    {0, 0, 0, 1, 1, 1},
                                    {1, 0, 0.5f, 0.5f, 0, 1}});
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(Interpolate, interpolate,
                          {kAnyCpu, {{"dense_rows", ResolveDenseRows, CreateDenseRows}}});

}  // namespace tilewire
