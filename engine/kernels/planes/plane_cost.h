// SPDX-License-Identifier: Apache-2.0
//
// Estimated cycles of a product by planes of bf16 (plane_product.h). Pure functions.
//
// A product of two tiles takes 18.5 cycles, as the clock sinks under them, and in a step each tile
// of sums waits 23 for a plane of its operands, which come from the second cache. The end of a tile
// of sums takes 120, dst included, and a line of 32 numbers of src is split in 23; of weights that
// were not split when a model was loaded, in 5 to 8.5, an estimate. Weights come from memory at
// little more than half of what vectors read, as loads of tiles are waited for; and where the
// second cache does not hold them, each strip of rows reads them again from the third.
//
// So products by planes lose on few outputs, where splitting src is not made up for, on large
// weights of few rows, and on channels or rows that fill tiles to a small part: a product of two
// tiles takes its time however they are filled.
//
// Measured on the CPU of tests/bench/figures/sapphire_rapids.md.
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

// Products, ends of tiles, and the split of src, and of weights that are not split.
inline double PlaneArithmeticCycles(const PlaneProductShape& shape) {
  constexpr double kProduct = cpu::kTileProductCycles / 0.865, kLoads = 23, kEnd = 120, kLine = 23;
  constexpr double kProducts[] = {1, 3, 6}, kWeightsLine[] = {5, 7, 8.5};
  const double blocks = DivUp(shape.outputs, int64_t{kPlaneLanes});
  const double tap_steps = DivUp(shape.channels, kPlaneStep);
  const double steps = shape.taps * tap_steps;
  const double weights_lines = shape.weights_are_split ? 0 : blocks * kPlaneLanes * steps;
  const double step = kProducts[shape.planes - 1] * kProduct + shape.planes * kLoads;
  return PlaneTiles(shape) * blocks * (steps * step + kEnd) +
         PlaneSourceLines(shape) * tap_steps * kLine +
         weights_lines * kWeightsLine[shape.planes - 1];
}

// Reading `bytes` of weights once more for each of `times`, where caches near the core do not hold
// them.
inline double RereadingCycles(double bytes, double times) {
  constexpr double kCached = 1 << 20, kByte = 0.08;
  return bytes > kCached ? times * bytes * kByte : 0;
}

// Without the first reading of weights. Parts of those that are split in the run stay in a cache.
inline double PlaneCycles(const PlaneProductShape& shape) {
  if (!shape.weights_are_split) return PlaneArithmeticCycles(shape);
  const auto weights = static_cast<double>(shape.WeightsLayout(1).SizeBytes());
  return PlaneArithmeticCycles(shape) +
         RereadingCycles(weights, static_cast<double>(shape.Strips() - 1));
}

// Reading so many bytes of weights from memory.
inline double PlaneWeightsCycles(double bytes, const cpu::Machine& machine) {
  constexpr double kShareOfBandwidth = 0.57;
  return bytes / kShareOfBandwidth / machine.MemoryBytesPerCycle(kPlaneLineBytes);
}

// The same of several products of one shape, each with weights of its own.
inline double ProductsCyclesByPlanes(const PlaneProductShape& shape, int64_t products,
                                     const cpu::Machine& machine) {
  const double numbers = static_cast<double>(products * shape.FlatChannels() *
                                             RoundUp(shape.outputs, int64_t{kPlaneLanes}));
  const double weights = shape.weights_are_split
                             ? static_cast<double>(shape.WeightsLayout(products).SizeBytes())
                             : numbers * sizeof(float);
  return static_cast<double>(products) * PlaneCycles(shape) + PlaneWeightsCycles(weights, machine);
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_PLANE_COST_H_
