// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/tiling.h"

#include <algorithm>
#include <limits>

#include "engine/base/checked_math.h"

namespace tilewire::convolution {
namespace {

constexpr int kMaxBlocks = 4;  // the generator's addressing of weights reaches four

double TileCycles(const VectorUnit& unit, int64_t blocks, int64_t pixels) {
  const bool embedded = unit.has_masks() && blocks == 1;
  // One per line of weights and of src.
  const double prefetches = (blocks * unit.lanes() + pixels) / 16.0;
  const double fmas = blocks * pixels;
  const double loads = blocks + pixels + prefetches;
  const double instructions = fmas + blocks + (embedded ? 0 : pixels) + prefetches;
  constexpr double kLatency = 4, kWeightsFetch = 0.3;
  return std::max({fmas / 2, loads / 2, instructions / 4, kLatency}) + kWeightsFetch * blocks;
}

int64_t LargestPixels(const RegisterBudget& budget, int64_t blocks) {
  const int64_t beside = std::max<int64_t>(budget.scratch, blocks + 1);
  return (budget.unit.registers() - budget.extra - beside) / blocks;
}

}  // namespace

Tiling ChooseTiling(int64_t row_pixels, int64_t oc_blocks, const RegisterBudget& budget) {
  Tiling best;
  double best_cycles = std::numeric_limits<double>::infinity();
  for (int64_t blocks = 1; blocks <= std::min<int64_t>(kMaxBlocks, oc_blocks); ++blocks) {
    const int64_t pixels = LargestPixels(budget, blocks);
    if (pixels < 1) continue;
    const int64_t tiles = DivUp(row_pixels, pixels), groups = DivUp(oc_blocks, blocks);
    const int64_t long_tiles = row_pixels % tiles, large_groups = oc_blocks % groups;
    double cycles = 0;
    for (auto [n, b] : {std::pair(large_groups, oc_blocks / groups + 1),
                        std::pair(groups - large_groups, oc_blocks / groups)}) {
      if (n == 0) continue;
      cycles += n * (long_tiles * TileCycles(budget.unit, b, row_pixels / tiles + 1) +
                     (tiles - long_tiles) * TileCycles(budget.unit, b, row_pixels / tiles));
    }
    if (cycles >= best_cycles) continue;
    best_cycles = cycles;
    best = {SplitEvenly(row_pixels, tiles), SplitEvenly(oc_blocks, groups)};
  }
  return best;
}

WorkSize ChooseWorkSize(const Geometry& geometry, const Tiling& tiling, int lanes, bool may_chunk) {
  constexpr int64_t kSrcBytes = 256 * 1024;      // of src that a piece reads
  constexpr int64_t kWeightsBytes = 512 * 1024;  // that stay in the second cache together with it
  // Per image, at least, if its size allows: work for several threads.
  constexpr int64_t kPieces = 8;
  const int64_t taps = geometry.kernel[0] * geometry.kernel[1] * geometry.kernel[2];
  const int64_t ic_blocks = DivUp(geometry.ic, lanes);
  const int64_t group_bytes = tiling.oc_groups[0].size * geometry.ic * taps * lanes * 4;
  const int64_t groups = tiling.oc_groups.size();
  const int64_t rows = geometry.out[0] * geometry.out[1];
  const int64_t units = rows * static_cast<int64_t>(tiling.tiles.size());
  const int64_t src_bytes = geometry.ic * geometry.in[0] * geometry.in[1] * geometry.in[2] * 4;

  WorkSize work;
  work.units = std::max<int64_t>(
      1, units * std::min(kSrcBytes, src_bytes) / std::max<int64_t>(1, src_bytes));
  work.ic_blocks = ic_blocks;
  if (groups * group_bytes <= kWeightsBytes) {
    work.oc_groups = groups;
    const int64_t pieces = std::max<int64_t>(1, kPieces / geometry.groups);
    work.units = std::min(work.units, DivUp(units, pieces));
  } else {
    work.oc_groups = 1;
    work.streams_weights = true;
    if (may_chunk && group_bytes > kWeightsBytes) {
      work.ic_blocks = std::max<int64_t>(1, ic_blocks * kWeightsBytes / 2 / group_bytes);
      work.units = units;
    }
  }
  return work;
}

WorkSize WithChunksOfFirstCache(WorkSize work, const Geometry& geometry, const Tiling& tiling,
                                int lanes) {
  constexpr int64_t kWeightsBytes = 20 * 1024;  // two tiles of src are in the first cache, too
  constexpr int64_t kFewestTiles = 8;
  const int64_t units =
      geometry.out[0] * geometry.out[1] * static_cast<int64_t>(tiling.tiles.size());
  const int64_t ic_blocks = DivUp(geometry.ic, lanes);
  const int64_t block_bytes = tiling.oc_groups[0].size * lanes * lanes * kFloatBytes;
  const int64_t chunks = DivUp(ic_blocks * block_bytes, kWeightsBytes);
  if (chunks == 1 || units < kFewestTiles) return work;
  work.ic_blocks = std::min(work.ic_blocks, DivUp(ic_blocks, chunks));
  if (work.streams_weights) work.units = units;
  return work;
}

}  // namespace tilewire::convolution
