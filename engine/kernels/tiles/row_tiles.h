// SPDX-License-Identifier: Apache-2.0
//
// Cuts a row of pixels into tiles whose sums stay in registers. Pure function, for generators.
#ifndef ENGINE_KERNELS_TILES_ROW_TILES_H_
#define ENGINE_KERNELS_TILES_ROW_TILES_H_

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"

namespace tilewire {

// Tiles of about the same width, at most `most` pixels and whole strides, so that those inside the
// row are alike; one that is cut off at the right may be the last. A tile comes from
// tile_at(first, pixels) and stands for `count`, 1 by itself, that follow each other and are alike,
// as its IsLike(tile) says. `most` >= `stride` >= 1.
template <typename TileAt>
auto CutIntoTiles(int64_t pixels, int64_t most, int64_t stride, const TileAt& tile_at) {
  std::vector<decltype(tile_at(pixels, most))> tiles;
  const int64_t whole = most / stride * stride;
  const int64_t width = RoundUp(DivUp(pixels, std::max<int64_t>(1, DivUp(pixels, whole))), stride);
  for (int64_t first = 0; first < pixels; first += width) {
    auto tile = tile_at(first, std::min(width, pixels - first));
    if (!tiles.empty() && tiles.back().IsLike(tile)) {
      ++tiles.back().count;
    } else {
      tiles.push_back(std::move(tile));
    }
  }
  return tiles;
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_ROW_TILES_H_
