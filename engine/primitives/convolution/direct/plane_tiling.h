// SPDX-License-Identifier: Apache-2.0
//
// How the plane of one channel is cut into tiles, for kernels whose lanes are neighbouring pixels
// of a row: bands of rows x columns of one vector. Most of them lie inside src with all of their
// taps and share their code; those at the edges do not. Pure functions.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_PLANE_TILING_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_PLANE_TILING_H_

#include <cstdint>
#include <vector>

#include "engine/kernels/tiles/tap_runs.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// `count` bands, one below the other, of `rows` rows of dst each.
struct RowBand {
  int rows = 0;
  TapRange inside;  // rows of src, from the one on that tap 0 of the band's first row reads
  int64_t count = 1;
};

// `count` columns, one beside the other, of `pixels` pixels of a row each.
struct PixelColumn {
  int pixels = 0;
  int64_t first_src = 0;  // the pixel of src that tap 0 of the first column's first pixel reads
  int64_t count = 1;
};

// Bands of as even a height as possible, `most_rows` at most.
std::vector<RowBand> CutIntoBands(const Geometry& geometry, int64_t most_rows);

// Columns of `lanes` pixels, and what is left of the row.
std::vector<PixelColumn> CutIntoColumns(const Geometry& geometry, int lanes);

// The lanes, as bits, whose pixel of src lies inside the row, if lane 0 reads pixel `first` and the
// next lanes every `step`-th after it.
uint32_t LanesInside(const Geometry& geometry, int64_t first, int64_t step, int lanes);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_PLANE_TILING_H_
