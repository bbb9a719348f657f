// SPDX-License-Identifier: Apache-2.0
//
// How a Winograd convolution F(tile x tile, 3x3) is cut. The tiles of all images form one row,
// which is cut into blocks, whose transformed inputs are in the scratchpad at a time, and these
// into groups, one for each step of the matrix product. A block is processed in one of two ways:
//
//   alone   The transformed inputs of a block stay in the second cache of the thread that made
//           them, and a thread takes whole blocks.
//   shared  If they would not fit, blocks are large, so that the weights are fetched rarely, and
//           threads share a block: first its inputs, then its panels of output channels.
//
// With products of f32 the products of one panel are transformed as soon as they are summed, in
// both. Products by planes of bf16 take a quarter of the time and so want more of each number that
// is fetched: see winograd_plane_driver.cc. No result depends on the plan: a product sums over its
// input channels in one order. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_PLAN_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_PLAN_H_

#include <algorithm>
#include <cstdint>

#include "engine/base/range.h"
#include "engine/memory/winograd_layout.h"
#include "engine/primitives/convolution/direct/tiling.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

struct WinogradPlan {
  WinogradLayout weights;
  int64_t tile_rows = 0, tile_columns = 0;      // of an image
  int64_t input_blocks = 0, output_blocks = 0;  // of channels
  int64_t panels = 0;
  bool shared = false;
  int64_t group_tiles = 0;   // tiles of a group
  int64_t block_groups = 0;  // groups of a block

  int tile() const { return weights.tile; }
  int side() const { return weights.tile + 2; }
  int points() const { return weights.points(); }
  int64_t ImageTiles() const { return tile_rows * tile_columns; }
  int64_t BlockTiles() const { return group_tiles * block_groups; }
  int64_t Blocks(int64_t images) const { return DivUp(images * ImageTiles(), BlockTiles()); }
  Range TilesOfBlock(int64_t images, int64_t block) const {
    const int64_t first = block * BlockTiles();
    return {first, std::min(BlockTiles(), images * ImageTiles() - first)};
  }

  // An odd number of cache lines, because points that are a power of two apart would compete for
  // one set of the first cache.
  static constexpr int64_t PointStride(int64_t elements) { return (DivUp(elements, 16) | 1) * 16; }

  // Sizes and distances in the scratchpad for products of f32, in elements. V is
  // [point][group][input block][tile][lane], M is [point][group][output block][tile][lane] of one
  // panel.
  int64_t VGroup() const { return input_blocks * group_tiles * weights.lanes; }
  int64_t VPoint() const { return PointStride(block_groups * VGroup()); }
  int64_t VElements() const { return points() * VPoint(); }
  int64_t MPoint() const {
    return PointStride(BlockTiles() * weights.panel_blocks * weights.lanes);
  }
  int64_t MElements() const { return points() * MPoint(); }
};

// Every size of `geometry` is at least 1.
WinogradPlan PlanWinograd(const Geometry& geometry, int tile, const VectorUnit& unit);
// For products by three planes of bf16.
WinogradPlan PlanWinogradByPlanes(const Geometry& geometry, int tile);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_PLAN_H_
