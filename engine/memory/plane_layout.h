// SPDX-License-Identifier: Apache-2.0
//
// Weights that have been split into planes of bf16 (engine/kernels/planes/plane_split.h), in the
// order in which products by planes on matrix tiles read them. Of each matrix of channels times
// outputs, where the channels of a convolution are those of all its taps:
//
//   [matrix][group of 32 outputs][tap][step of 32 channels][plane][block of 16 outputs]
//           [16 pairs][16 outputs][2 channels of a pair]
//
// where pairs are of channels c and c + 16 if there are several planes, and of neighbours, as those
// of tensors of bf16 are, if there is one; with zeros after the last channel of a tap and after the
// last output. After them a byte for each group of each matrix: whether it holds an infinity, NaN,
// or a number that rounds to an infinity.
//
// Value type.
#ifndef ENGINE_MEMORY_PLANE_LAYOUT_H_
#define ENGINE_MEMORY_PLANE_LAYOUT_H_

#include <cstdint>

#include "engine/base/checked_math.h"

namespace tilewire {

inline constexpr int kPlaneLanes = 16, kPlaneBlocks = 2;  // of a block, and of a group
inline constexpr int64_t kPlaneStep = 32;                 // numbers of a line
inline constexpr int64_t kPlaneLineBytes = 64;            // of one plane
inline constexpr int64_t kPlaneBlockBytes = 1024;         // of a step's plane: 16 lines, a tile
inline constexpr int64_t kPlaneStepBytes = 2048;          // 32 lines of one plane: two tiles

struct PlaneLayout {
  int planes = 0;  // 1 to 3
  int64_t matrices = 0, outputs = 0, taps = 0;
  int64_t channels = 0;  // of a tap

  bool operator==(const PlaneLayout&) const = default;

  bool HasNeighboursAsPairs() const { return planes == 1; }
  int64_t Blocks() const { return DivUp(outputs, int64_t{kPlaneLanes}); }
  int64_t Groups() const { return DivUp(Blocks(), int64_t{kPlaneBlocks}); }
  int64_t TapSteps() const { return DivUp(channels, kPlaneStep); }
  int64_t StepBytes() const { return planes * kPlaneStepBytes; }  // of all planes
  int64_t GroupBytes() const { return taps * TapSteps() * StepBytes(); }
  // Groups are counted through all matrices.
  int64_t GroupOffset(int64_t group) const { return group * GroupBytes(); }
  int64_t BeyondOffset() const { return GroupOffset(matrices * Groups()); }  // the bytes of groups
  int64_t SizeBytes() const { return BeyondOffset() + matrices * Groups(); }
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_PLANE_LAYOUT_H_
