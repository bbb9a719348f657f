// SPDX-License-Identifier: Apache-2.0
//
// Estimates where convolutions of narrow groups are faster by lanes of all groups
// (grouped_generator.h) than by copies of each group to blocks of its own
// (regrouped_convolution.h). The shape and the unit decide. Pure functions.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_CHOICE_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_CHOICE_H_

#include "absl/status/status.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// Cycles per output pixel, of all groups. Infinite where the tables of lanes would be too large.
double GroupedCycles(const Geometry& geometry, const VectorUnit& unit);
// The same for each group in blocks of its own, with the copies where it does not lie in such.
double BlockedGroupsCycles(const Geometry& geometry, const VectorUnit& unit);

// kUnimplemented  no groups, depthwise, groups of whole blocks, or wide ones
absl::Status RequireNarrowGroups(const Geometry& geometry, const VectorUnit& unit);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_CHOICE_H_
