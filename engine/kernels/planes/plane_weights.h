// SPDX-License-Identifier: Apache-2.0
//
// Blocks of 16 outputs of weights, split into planes of bf16 (engine/memory/plane_layout.h) when a
// model is loaded or while a product runs, and put together again. Pure functions.
#ifndef ENGINE_KERNELS_PLANES_PLANE_WEIGHTS_H_
#define ENGINE_KERNELS_PLANES_PLANE_WEIGHTS_H_

#include <cstddef>
#include <cstdint>

#include "engine/kernels/planes/plane_split.h"
#include "engine/memory/plane_layout.h"

namespace tilewire {

// 16 outputs of weights as f32: those of one channel are neighbours. Strides are bytes, of a
// channel, of 16 channels and of a tap.
struct WeightsBlock {
  const std::byte* begin;
  int64_t channel, block, tap;
};

// Writes the planes of a block to `lines`, where its first line is in those of its group. Returns
// whether some number is beyond planes (IsBeyondPlanes()).
bool SplitWeights(const PlaneSplit& split, const PlaneLayout& layout, const WeightsBlock& from,
                  std::byte* lines);

// Writes the planes of those numbers of a block that are beyond planes such that the sum of planes
// is the number still: an infinity and NaN are in the first plane alone, and a number that rounds
// to an infinity is cut off in the first plane, but becomes the infinity where there is one only.
void HoldBeyond(const PlaneLayout& layout, const WeightsBlock& from, std::byte* lines);

// The sums of planes, [16 channels][tap][channel of 16][16 outputs]: the numbers that were split,
// but for what the last plane rounds off.
void RestoreWeights(const PlaneLayout& layout, const std::byte* lines, float* to);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_PLANE_WEIGHTS_H_
