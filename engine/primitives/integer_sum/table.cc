// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/integer_sum/implementations.h"
#include "engine/primitives/integer_sum/integer_sum.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace integer_sum {
namespace {

absl::Status Validate(const IntegerSumDesc& desc, const Attributes&) {
  if (desc.srcs.empty()) return InvalidArgument("integer_sum: no source");
  if (desc.scales.size() != desc.srcs.size() || desc.zero_points.size() != desc.srcs.size()) {
    return InvalidArgument("integer_sum: ", desc.scales.size(), " scales and ",
                           desc.zero_points.size(), " zero points for ", desc.srcs.size(),
                           " sources");
  }
  ABSL_RETURN_IF_ERROR(CheckDestination("integer_sum: dst", desc.dst));
  for (size_t i = 0; i < desc.srcs.size(); ++i) {
    const std::string name = absl::StrCat("integer_sum: source ", i);
    ABSL_RETURN_IF_ERROR(CheckSource(name, desc.srcs[i]));
    ABSL_RETURN_IF_ERROR(CheckSameDims(name, desc.srcs[i], "dst", desc.dst));
  }
  const bool positive =
      std::all_of(desc.scales.begin(), desc.scales.end(), [](float scale) { return scale > 0; });
  if (positive && desc.dst_scale > 0) return absl::OkStatus();
  return InvalidArgument("integer_sum: a scale is not positive");
}

}  // namespace
}  // namespace integer_sum

std::vector<IntegerSumDesc> IntegerSumProbes(DataType type) {
  const MemoryDesc image = probes::Tagged({2, 32, 8, 8}, type, "nhwc");
  return {IntegerSumDesc{{image, image}, image, {0.5f, 0.25f}, {3, 0}, 0.5f, 1}};
}

TILEWIRE_DEFINE_PRIMITIVE(IntegerSum, integer_sum,
                          {kAvx512AndAvx2, {{"dense", ResolveDense, CreateDense}}},
                          {kAnyCpu, {{"dense_loop", ResolveDense, CreateDenseLoop}}});

}  // namespace tilewire
