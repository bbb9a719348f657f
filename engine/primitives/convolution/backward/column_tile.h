// SPDX-License-Identifier: Apache-2.0
//
// A tile of neighbouring pixels of a depthwise window's row, as the products that it consists of:
// columns of the other tensor, each of which is loaded once for all pixels of the tile, times taps.
// Known while generating, whatever strides and dilations are. For CutIntoTiles() (row_tiles.h).
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_COLUMN_TILE_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_COLUMN_TILE_H_

#include <cstdint>
#include <vector>

#include "absl/algorithm/container.h"

namespace tilewire::convolution {

// A column and a pixel, both counted from those of the tile's first one.
struct ColumnProduct {
  int64_t column, tap;
  int pixel;
  bool operator==(const ColumnProduct&) const = default;
};

// Neighbouring pixels, and as many tiles like it as follow each other.
struct ColumnTile {
  int pixels = 0;
  std::vector<ColumnProduct> products;
  int64_t count = 1;

  // Products of one column keep their order.
  void SortByColumns() {
    absl::c_stable_sort(products, [](const ColumnProduct& a, const ColumnProduct& b) {
      return a.column < b.column;
    });
  }
  bool IsLike(const ColumnTile& other) const {
    return pixels == other.pixels && products == other.products;
  }
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_COLUMN_TILE_H_
