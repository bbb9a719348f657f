// SPDX-License-Identifier: Apache-2.0
//
// How a convolution is cut into the matrix tiles of engine/kernels/tiles/matrix_tile.h. Only the
// shape decides. Pure functions.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_MATRIX_TILING_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_MATRIX_TILING_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/kernels/products/integer_tile.h"
#include "engine/primitives/convolution/direct/tiling.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// Tiles of a row of dst: as few rows of 16 pixels as possible, since a tile costs the same whether
// it is full or not; if that leaves a choice, tiles of one size, which share a configuration.
Tiling MatrixTiling(int64_t row_pixels, int64_t blocks);

// How many neighbouring tiles of a row are computed for one group of output blocks before the next
// group: so many that what they read of src stays in the first cache from group to group. If that
// of one tile is too much, all: then the weights of a group stay there instead.
int64_t TilesAtOnce(const Geometry& geometry);

// Narrow rows of dst, laid one after the other as the rows of src are, are one long row: every tap
// is the same distance away for all of its pixels, and tiles run across the ends of rows. What lies
// between two rows there is computed and not stored.
struct FlatPlane {
  int64_t row_pixels;  // of src, from row to row
  int64_t row_outputs;
};

// Turns the geometry of a convolution with stride 1 and no padding into that of one long row, where
// it is so narrow that this takes fewer tiles or fuller pairs of them. Strides are bytes.
std::optional<FlatPlane> FlattenNarrowPlane(Geometry* geometry, const Spatial& src_strides,
                                            const Spatial& dst_strides);

// Where the pixels of a tile of that row go.
std::vector<PixelRun> RunsOf(const FlatPlane& plane, const Range& tile, const Spatial& dst_strides);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_MATRIX_TILING_H_
