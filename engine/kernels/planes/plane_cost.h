// SPDX-License-Identifier: Apache-2.0
//
// Estimated cycles of a product by planes of bf16 (plane_product.h). Pure functions.
//
// The end of a tile of sums takes about 75 cycles of the vector units, beside the products of the
// next tile, and 20 for which those wait. A line of 32 numbers is split in 5 to 8.5, which weights
// that were split when a model was loaded do not pay: products by planes lose on few outputs, where
// splitting src is not made up for, and on channels or rows that fill tiles to a small part: a
// product of two tiles takes its time however they are filled.
// tests/bench/figures/convolution.md has estimates for some shapes. They have not been measured on
// a CPU with matrix tiles.
#ifndef ENGINE_KERNELS_PLANES_PLANE_COST_H_
#define ENGINE_KERNELS_PLANES_PLANE_COST_H_

#include <algorithm>
#include <cstdint>

#include "engine/base/checked_math.h"
#include "engine/cpu/machine.h"
#include "engine/kernels/planes/plane_operands.h"

namespace tilewire {

// The number of tiles: of 16 rows of dst, or of 16 lines where lines are shared.
inline int64_t PlaneTiles(const PlaneProductShape& shape) {
  if (!shape.strips.AreShared()) return DivUp(shape.rows, int64_t{kPlaneLanes});
  int64_t tiles = 0;
  for (int64_t strip = 0; strip < shape.Strips(); ++strip)
    tiles += DivUp(shape.strips.LinesOf(shape.RowsOfStrip(strip)), int64_t{kPlaneLanes});
  return tiles;
}

// The lines of src that are split for one step of channels.
inline int64_t PlaneSourceLines(const PlaneProductShape& shape) {
  if (shape.strips.AreShared()) return shape.Strips() * shape.strips.lines;
  return RoundUp(shape.rows, int64_t{kPlaneLanes}) * shape.taps;
}

inline double PlaneCycles(const PlaneProductShape& shape) {
  constexpr double kProduct =
      cpu::kTileProductCycles / 0.85;  // loads do not quite keep up with products
  constexpr double kEnd = 75, kStore = 20;
  constexpr double kProducts[] = {1, 3, 6}, kLine[] = {5, 7, 8.5};
  const double blocks = DivUp(shape.outputs, int64_t{kPlaneLanes});
  const double tap_steps = DivUp(shape.channels, kPlaneStep);
  const double steps = shape.taps * tap_steps;
  const double weights_lines = shape.weights_are_split ? 0 : blocks * kPlaneLanes * steps;
  return PlaneTiles(shape) * blocks *
             (std::max(steps * kProducts[shape.planes - 1] * kProduct, kEnd) + kStore) +
         (PlaneSourceLines(shape) * tap_steps + weights_lines) * kLine[shape.planes - 1];
}

// The same of several products of one shape, each with weights of its own, of which so many bytes
// come from memory per cycle.
inline double ProductsCyclesByPlanes(const PlaneProductShape& shape, int64_t products,
                                     double weights_bytes_per_cycle) {
  const double numbers = static_cast<double>(products * shape.FlatChannels() *
                                             RoundUp(shape.outputs, int64_t{kPlaneLanes}));
  const double weights = shape.weights_are_split
                             ? static_cast<double>(shape.WeightsLayout(products).SizeBytes())
                             : numbers * sizeof(float);
  return static_cast<double>(products) * PlaneCycles(shape) + weights / weights_bytes_per_cycle;
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_PLANE_COST_H_
