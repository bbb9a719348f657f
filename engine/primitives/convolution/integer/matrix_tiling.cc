// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/integer/matrix_tiling.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/kernels/tiles/matrix_tiles.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kTilePixels = kMatrixPixels / 2;

int64_t TilesOf(const std::vector<Range>& ranges) {
  int64_t tiles = 0;
  for (const Range& range : ranges) tiles += DivUp(range.size, kTilePixels);
  return tiles;
}

}  // namespace

Tiling MatrixTiling(int64_t row_pixels, int64_t blocks) {
  const int64_t count = DivUp(row_pixels, int64_t{kMatrixPixels});
  Tiling tiling = {SplitEvenly(row_pixels, count),
                   SplitEvenly(blocks, DivUp(blocks, int64_t{kMatrixBlocks}))};
  std::vector<Range> whole;
  for (int64_t pixel = 0; pixel < row_pixels; pixel += kMatrixPixels)
    whole.push_back({pixel, std::min<int64_t>(kMatrixPixels, row_pixels - pixel)});
  if (TilesOf(whole) < TilesOf(tiling.tiles)) tiling.tiles = std::move(whole);
  return tiling;
}

int64_t TilesAtOnce(const Geometry& geometry) {
  constexpr int64_t kBytes = 24 * 1024;  // half of the first cache of the CPUs that have tiles
  int64_t bytes = geometry.ic * kQuad;   // of a tile
  for (int d : {0, 1}) bytes *= geometry.kernel[d];
  const int64_t pixels = std::min<int64_t>(kMatrixPixels, geometry.out[2]);
  bytes *= pixels * std::min(geometry.stride[2], geometry.kernel[2]) + geometry.kernel[2] - 1;
  return bytes > kBytes ? std::numeric_limits<int64_t>::max() : kBytes / bytes;
}

std::optional<FlatPlane> FlattenNarrowPlane(Geometry* geometry, const Spatial& src_strides,
                                            const Spatial& dst_strides) {
  constexpr int64_t kMostPixels = 512;  // each tile has code of its own
  constexpr int64_t kLargestRow = std::numeric_limits<int32_t>::max() / 4 / kMostPixels;
  const Spatial& out = geometry->out;
  const bool is_plane = out[0] == 1 && geometry->kernel[0] == 1 && out[1] > 1;
  const bool is_dense = geometry->stride[1] == 1 && geometry->stride[2] == 1 &&
                        src_strides[2] > 0 && src_strides[1] % src_strides[2] == 0;
  if (!is_plane || !is_dense || out[2] > kTilePixels || dst_strides[1] > kLargestRow)
    return std::nullopt;
  const FlatPlane plane = {.row_pixels = src_strides[1] / src_strides[2], .row_outputs = out[2]};
  if (plane.row_pixels < out[2] || plane.row_pixels > kMostPixels) return std::nullopt;
  const int64_t pixels = (out[1] - 1) * plane.row_pixels + out[2];
  if (pixels > kMostPixels || DivUp(pixels, kTilePixels) > out[1]) return std::nullopt;
  for (int d : {1, 2}) geometry->in[d] = (geometry->kernel[d] - 1) * geometry->tap_step[d] + 1;
  geometry->in[2] += pixels - 1;
  geometry->out = {1, 1, pixels};
  return plane;
}

std::vector<PixelRun> RunsOf(const FlatPlane& plane, const Range& tile,
                             const Spatial& dst_strides) {
  std::vector<PixelRun> runs;
  const int64_t end = tile.begin + tile.size;
  for (int64_t row = tile.begin / plane.row_pixels; row * plane.row_pixels < end; ++row) {
    const int64_t row_begin = row * plane.row_pixels;
    const int64_t first = std::max(tile.begin, row_begin);
    const int64_t count = std::min(end, row_begin + plane.row_outputs) - first;
    if (count <= 0) continue;
    runs.push_back(
        {.first = static_cast<int>(first - tile.begin),
         .count = static_cast<int>(count),
         .dst_bytes = row * dst_strides[1] + (first - row_begin - tile.begin) * dst_strides[2]});
  }
  return runs;
}

}  // namespace tilewire::convolution
