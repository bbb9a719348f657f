// SPDX-License-Identifier: Apache-2.0
//
// Estimated cycles of a product by planes of bf16 (plane_product.h) and by vectors of 16 floats, of
// which rows choose. Only the shape decides. Pure functions.
//
// A product of two tiles takes 16 cycles however they are filled, the end of a tile of sums about
// 90, and a line of 32 numbers is split in 5 to 8.5, which weights that were split when a model was
// loaded do not pay: products by planes lose on few outputs, where splitting src is not made up
// for, and on channels or rows that fill tiles to a small part.
// Of a 1x1 convolution from 2048 to 512 channels of 7x7 pixels six products take 0.56 of what
// vectors take, three 0.3 and one 0.1 (0.7, 0.4 and 0.2 where weights are split in every run); of
// one from 64 to 64 of 56x56, 0.7, 0.5 and 0.3.
#ifndef ENGINE_KERNELS_PLANE_COST_H_
#define ENGINE_KERNELS_PLANE_COST_H_

#include "engine/base/checked_math.h"
#include "engine/kernels/plane_operands.h"
#include "engine/kernels/plane_split.h"
#include "engine/kernels/plane_tile.h"

namespace tilewire {

inline double PlaneCycles(const PlaneProductShape& shape) {
  constexpr double kProduct = 16 / 0.85, kEnd = 90;  // loads do not quite keep up with products
  constexpr double kProducts[] = {1, 3, 6}, kLine[] = {5, 7, 8.5};
  const double tiles = DivUp(shape.rows, int64_t{kPlaneLanes});
  const double blocks = DivUp(shape.outputs, int64_t{kPlaneLanes});
  const double steps = shape.taps * DivUp(shape.channels, kPlaneStep);
  const double split = tiles + (shape.weights_are_split ? 0 : blocks);
  return tiles * blocks * (steps * kProducts[shape.planes - 1] * kProduct + kEnd) +
         split * kPlaneLanes * steps * kLine[shape.planes - 1];
}

inline double VectorCycles(const PlaneProductShape& shape) {
  constexpr double kFmas = 2 * 0.92;  // of a cycle
  return static_cast<double>(shape.rows) * static_cast<double>(shape.FlatChannels()) *
         static_cast<double>(DivUp(shape.outputs, int64_t{kPlaneLanes})) / kFmas;
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANE_COST_H_
