// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/few_outputs_choice.h"

#include <algorithm>

#include "engine/base/checked_math.h"
#include "engine/primitives/convolution/direct/grouped_choice.h"

namespace tilewire::convolution {
namespace {

// Steps per pixel of other rows. Without groups they take one for each tap and input channel, or a
// quarter of that and transforms with Winograd's algorithm, and a few to store a whole vector.
double StepsOfOthers(const Geometry& geometry, const VectorUnit& unit) {
  constexpr int64_t kStore = 6, kTransforms = 20;
  if (geometry.grouped_weights && geometry.oc > 0)
    return std::min(GroupedCycles(geometry, unit), BlockedGroupsCycles(geometry, unit));
  const int64_t blocks = DivUp(geometry.ic, unit.lanes()), taps = *CheckedProduct(geometry.kernel);
  const bool may_transform = geometry.kernel == Spatial{1, 3, 3} &&
                             geometry.stride == Spatial{1, 1, 1} &&
                             geometry.tap_step == Spatial{1, 1, 1};
  const int64_t products =
      may_transform ? geometry.ic * taps / 4 + kTransforms * (blocks + 1) : geometry.ic * taps;
  return static_cast<double>(kStore + products);
}

}  // namespace

absl::Status RequireFewOutputs(const Geometry& geometry, const VectorUnit& unit) {
  constexpr int64_t kFewestVectors = 4, kLaneSums = 3;
  const int64_t lanes = unit.lanes(), blocks = DivUp(geometry.ic, lanes);
  const int64_t steps =
      geometry.groups * geometry.oc * (blocks * *CheckedProduct(geometry.kernel) + kLaneSums);
  if (geometry.ic < lanes || geometry.oc > lanes ||
      (geometry.groups > 1 && geometry.ic % lanes != 0) ||
      *CheckedProduct(geometry.out) < kFewestVectors * lanes ||
      static_cast<double>(steps) >= StepsOfOthers(geometry, unit)) {
    return absl::UnimplementedError(
        "is for few output channels of many pixels, and groups of whole blocks");
  }
  return absl::OkStatus();
}

}  // namespace tilewire::convolution
