// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/winograd_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace tilewire::convolution {
namespace {

constexpr int kPanelBlocks = 2;             // 14 x 2 products in 32 registers, 6 x 2 in 16
constexpr int64_t kAloneTiles = 28;         // enough to make up for fetching the weights once
constexpr int64_t kAloneBytes = 544 << 10;  // of V, in a second cache of 1 MB
constexpr int64_t kSharedTiles = 112;
constexpr int64_t kSharedBytes = 32 << 20;  // of V

// Cycles, fitted to measurements on a Cascade Lake core. Weights come from memory, as they do in a
// whole model.
constexpr double kDirectShareOfPeak = 0.92, kProductShareOfPeak = 0.94;
constexpr double kDirectWeightsByte = 0.18, kWinogradWeightsByte = 0.22;
constexpr double kTile = 200;  // per tile, besides its blocks of channels
// For one block of channels of one tile, input or output.
constexpr double TransformCycles(int tile) { return tile == 2 ? 110 : 210; }
// Weights that are 1.8 or 4 times as large have to be worth their memory and their packing.
constexpr double kWorthwhile = 1.1;

double DirectCycles(const Geometry& geometry, const VectorUnit& unit) {
  const double weights = 9.0 * geometry.ic * RoundUp(geometry.oc, unit.lanes());
  const double products = weights * geometry.out[1] * geometry.out[2];
  return products / (2 * unit.lanes()) / kDirectShareOfPeak +
         weights * sizeof(float) * kDirectWeightsByte;
}

double WinogradCycles(const Geometry& geometry, int tile, const VectorUnit& unit) {
  const double tiles = 1.0 * DivUp(geometry.out[1], tile) * DivUp(geometry.out[2], tile);
  const double blocks = 1.0 * DivUp(geometry.ic, unit.lanes()) + DivUp(geometry.oc, unit.lanes());
  const double weights = 1.0 * (tile + 2) * (tile + 2) * RoundUp(geometry.ic, unit.lanes()) *
                         RoundUp(geometry.oc, unit.lanes());
  return tiles * weights / (2 * unit.lanes()) / kProductShareOfPeak +
         tiles * (kTile + blocks * TransformCycles(tile)) +
         weights * sizeof(float) * kWinogradWeightsByte;
}

}  // namespace

WinogradPlan PlanWinograd(const Geometry& geometry, int tile, const VectorUnit& unit) {
  WinogradPlan plan;
  plan.weights.tile = tile;
  plan.weights.lanes = unit.lanes();
  plan.tile_rows = DivUp(geometry.out[1], tile);
  plan.tile_columns = DivUp(geometry.out[2], tile);
  plan.input_blocks = DivUp(geometry.ic, unit.lanes());
  plan.output_blocks = DivUp(geometry.oc, unit.lanes());
  const int panel_blocks = static_cast<int>(std::min<int64_t>(kPanelBlocks, plan.output_blocks));
  plan.weights.panel_blocks = panel_blocks;
  plan.panels = plan.weights.Panels(geometry.oc);
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

absl::Status RequireFasterThanDirect(const Geometry& geometry, int tile, const VectorUnit& unit) {
  const double mine = WinogradCycles(geometry, tile, unit);
  const double direct = DirectCycles(geometry, unit);
  if (mine * kWorthwhile > direct) {
    return absl::UnimplementedError(absl::StrCat("is estimated at ", static_cast<int64_t>(mine),
                                                 " cycles per image, the direct convolution at ",
                                                 static_cast<int64_t>(direct)));
  }
  return absl::OkStatus();
}

absl::Status RequirePairsFasterThanWinograd(const Geometry& geometry, const VectorUnit& unit) {
  // Measured on a Zen 4 core. A line is 32 channels of a pixel, which are rounded first.
  constexpr double kFasterThanDirect = 1.75, kLine = 24;
  const double lines = 1.0 * DivUp(geometry.ic, 32) * geometry.in[1] * geometry.in[2];
  const double mine = DirectCycles(geometry, unit) / kFasterThanDirect + kLine * lines;
  const double other =
      std::min(WinogradCycles(geometry, 2, unit), WinogradCycles(geometry, 4, unit));
  if (other < mine) {
    return absl::UnimplementedError(absl::StrCat("is estimated at ", static_cast<int64_t>(mine),
                                                 " cycles per image, Winograd's at ",
                                                 static_cast<int64_t>(other)));
  }
  return absl::OkStatus();
}

absl::Status RequireFasterTile(const Geometry& geometry, int tile, const VectorUnit& unit) {
  const double mine = WinogradCycles(geometry, tile, unit);
  const int other_tile = 6 - tile;
  const double other = WinogradCycles(geometry, other_tile, unit);
  if (other < mine) {
    return absl::UnimplementedError(
        absl::StrCat("is estimated at ", static_cast<int64_t>(mine), " cycles per image, F(",
                     other_tile, "x", other_tile, ", 3x3) at ", static_cast<int64_t>(other)));
  }
  return absl::OkStatus();
}

}  // namespace tilewire::convolution
