// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/plane_tiling.h"

#include <algorithm>

#include "engine/base/checked_math.h"
#include "engine/base/range.h"

namespace tilewire::convolution {

std::vector<RowBand> CutIntoBands(const Geometry& geometry, int64_t most_rows) {
  std::vector<RowBand> bands;
  const int64_t stride = geometry.stride[1];
  const int64_t reach = (geometry.kernel[1] - 1) * geometry.tap_step[1] + 1;
  for (const Range& range : SplitEvenly(geometry.out[1], DivUp(geometry.out[1], most_rows))) {
    const int64_t first = range.begin * stride - geometry.pad[1];
    const int64_t rows = (range.size - 1) * stride + reach;
    RowBand band{.rows = static_cast<int>(range.size)};
    band.inside.begin = std::clamp<int64_t>(-first, 0, rows);
    band.inside.end = std::clamp<int64_t>(geometry.in[1] - first, band.inside.begin, rows);
    if (!bands.empty() && bands.back().rows == band.rows &&
        bands.back().inside.begin == band.inside.begin &&
        bands.back().inside.end == band.inside.end) {
      ++bands.back().count;
    } else {
      bands.push_back(band);
    }
  }
  return bands;
}

std::vector<PixelColumn> CutIntoColumns(const Geometry& geometry, int lanes) {
  std::vector<PixelColumn> columns;
  const int64_t stride = geometry.stride[2];
  const int64_t read = (geometry.kernel[2] - 1) * geometry.tap_step[2] + lanes * stride;
  bool after_whole = false;
  for (int64_t pixel = 0; pixel < geometry.out[2]; pixel += lanes) {
    PixelColumn column;
    column.pixels = static_cast<int>(std::min<int64_t>(lanes, geometry.out[2] - pixel));
    column.first_src = pixel * stride - geometry.pad[2];
    const bool whole = column.pixels == lanes && column.first_src >= 0 &&
                       column.first_src + read <= geometry.in[2];
    if (whole && after_whole) {
      ++columns.back().count;
    } else {
      columns.push_back(column);
    }
    after_whole = whole;
  }
  return columns;
}

uint32_t LanesInside(const Geometry& geometry, int64_t first, int64_t step, int lanes) {
  uint32_t inside = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    const int64_t pixel = first + lane * step;
    if (pixel >= 0 && pixel < geometry.in[2]) inside |= 1u << lane;
  }
  return inside;
}

}  // namespace tilewire::convolution
