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

#include "absl/status/status.h"
#include "engine/primitives/pooling/axis.h"
#include "engine/primitives/pooling/implementations.h"

namespace tilewire::pooling {

constexpr int kLanes = 8;

// Channels that are neighbours: elements from an image's first to theirs, and how many.
struct LaneGroup {
  int64_t src, dst;
  int count;
};

struct LaneLayout {
  explicit LaneLayout(const PoolingDesc& desc);

  std::vector<LaneGroup> groups;
  std::array<Axis, 3> axes;  // depth, height, width, with strides in elements
  int64_t images, src_image, dst_image, src_first, dst_first;
};

//   kUnimplemented  channels that are not neighbours in both tensors, or places that are not u8
absl::Status RequireLanes(const PoolingDesc& desc);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_LANES_H_
