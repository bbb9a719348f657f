// SPDX-License-Identifier: Apache-2.0
//
// Tensors of f32 whose channels are neighbours, in blocks or altogether, as groups of up to eight
// channels, and the pooling's three spatial dimensions in elements. What training's rows share.
// Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_POOLING_LANES_H_
#define ENGINE_PRIMITIVES_POOLING_LANES_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "engine/primitives/pooling/axis.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/threading/arena.h"

namespace tilewire::pooling {

constexpr int kLanes = 8, kLanesOfPair = 2 * kLanes;
// A diff_src of more bytes, which no cache of a core holds, is written past the caches.
constexpr int64_t kLargeGradient = int64_t{4} << 20;

// Channels that are neighbours: elements from an image's first to theirs, and how many.
struct LaneGroup {
  int64_t src, dst;
  int count;
};

struct LaneLayout {
  explicit LaneLayout(const PoolingDesc& desc);

  std::vector<LaneGroup> groups;
  // Calls body(image, first, end) for pairs of groups, on several threads at once: those of a block
  // of 16 channels share lines of memory, and are to be done row by row.
  void ForEachPair(const threading::Team& team,
                   absl::FunctionRef<void(int64_t, int64_t, int64_t)> body) const;
  // Whether a pair is whole, and its groups follow each other in both tensors.
  bool IsBlock(int64_t first, int64_t end) const;

  std::array<Axis, 3> axes;  // depth, height, width, with strides in elements
  int64_t images, src_image, dst_image, src_first, dst_first;
};

//   kUnimplemented  channels that are not neighbours in both tensors, or places that are not u8
absl::Status RequireLanes(const PoolingDesc& desc);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_LANES_H_
