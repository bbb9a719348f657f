// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/winograd/winograd_plan.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/memory/plane_layout.h"

namespace tilewire::convolution {
namespace {

constexpr int kPanelBlocks = 2;             // 14 x 2 products in 32 registers, 6 x 2 in 16
constexpr int64_t kAloneTiles = 28;         // enough to make up for fetching the weights once
constexpr int64_t kAloneBytes = 544 << 10;  // of V, in a second cache of 1 MB
constexpr int64_t kSharedTiles = 112;
constexpr int64_t kSharedBytes = 32 << 20;  // of V

// By planes, of which a group of tiles is the rows of a product. Every CPU with matrix tiles has a
// second cache of 2 MB.
constexpr int64_t kMostGroups = 4;            // weights come from beyond the second cache
constexpr int64_t kCachedBytes = 1800 << 10;  // of V, M and weights
constexpr int64_t kScratchBytes = 64 << 20;   // of V and M
constexpr int64_t kFewestBlocks = 4;          // for threads to take whole ones

WinogradPlan PlanOf(const Geometry& geometry, const WinogradLayout& weights) {
  TILEWIRE_CHECK(
      std::min({geometry.batch, geometry.ic, geometry.oc, geometry.out[1], geometry.out[2]}) >= 1,
      "a plan divides by the sizes of its tensors");
  WinogradPlan plan;
  plan.weights = weights;
  plan.tile_rows = DivUp(geometry.out[1], weights.tile);
  plan.tile_columns = DivUp(geometry.out[2], weights.tile);
  plan.input_blocks = DivUp(geometry.ic, weights.lanes);
  plan.output_blocks = DivUp(geometry.oc, weights.lanes);
  plan.panels = weights.Panels(geometry.oc);
  return plan;
}

}  // namespace

WinogradPlan PlanWinograd(const Geometry& geometry, int tile, const VectorUnit& unit) {
  const auto panel_blocks =
      static_cast<int>(std::min<int64_t>(kPanelBlocks, DivUp(geometry.oc, unit.lanes())));
  WinogradPlan plan =
      PlanOf(geometry, {.tile = tile, .lanes = unit.lanes(), .panel_blocks = panel_blocks});
  const int64_t tile_bytes = plan.points() * plan.input_blocks * unit.lanes() * sizeof(float);
  plan.shared = kAloneTiles * tile_bytes > kAloneBytes;
  const int64_t largest_group = (unit.registers() - panel_blocks - 1) / panel_blocks;
  const int64_t wanted = plan.shared
                             ? std::clamp(kSharedBytes / tile_bytes, largest_group, kSharedTiles)
                             : kAloneTiles;
  const int64_t tiles = geometry.batch * plan.ImageTiles();
  const int64_t block_tiles = DivUp(tiles, DivUp(tiles, wanted));
  plan.block_groups = DivUp(block_tiles, largest_group);
  plan.group_tiles = DivUp(block_tiles, plan.block_groups);
  return plan;
}

WinogradPlan PlanWinogradByPlanes(const Geometry& geometry, int tile) {
  constexpr int kPlanes = 3;
  WinogradPlan plan =
      PlanOf(geometry,
             {.tile = tile, .lanes = kPlaneLanes, .panel_blocks = kPlaneBlocks, .planes = kPlanes});
  const int64_t tiles = geometry.batch * plan.ImageTiles();
  plan.group_tiles = tiles <= kPlaneLanes ? kPlaneLanes : kPlaneRows;
  const PlaneLayout weights = plan.weights.Planes(geometry.oc, geometry.ic);
  const int64_t m_bytes = plan.group_tiles * plan.output_blocks * kPlaneLineBytes;
  const int64_t group_bytes = plan.points() * (weights.GroupBytes() + m_bytes);
  const int64_t cached_groups = (kCachedBytes - weights.SizeBytes()) / group_bytes;
  const int64_t wanted = cached_groups > 0
                             ? std::min(cached_groups, kMostGroups)
                             : std::clamp<int64_t>(kScratchBytes / group_bytes, 1, kMostGroups);
  const int64_t groups = DivUp(tiles, plan.group_tiles);
  plan.block_groups = DivUp(groups, DivUp(groups, wanted));
  plan.shared = cached_groups <= 0 || plan.Blocks(geometry.batch) < kFewestBlocks;
  return plan;
}

}  // namespace tilewire::convolution
