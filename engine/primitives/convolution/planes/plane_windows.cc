// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/planes/plane_windows.h"

#include <algorithm>

#include "engine/base/checked_math.h"
#include "engine/kernels/planes/plane_cost.h"

namespace tilewire::convolution {
namespace {

int64_t TapAt(const Geometry& geometry, int d, int64_t tap) { return tap * geometry.tap_step[d]; }

int64_t RankOf(const std::vector<int64_t>& residues, int64_t residue) {
  return std::lower_bound(residues.begin(), residues.end(), residue) - residues.begin();
}

}  // namespace

WindowLines::WindowLines(const Geometry& geometry) {
  for (int i : {0, 1}) {
    const int64_t stride = geometry.stride[i + 1];
    for (int64_t tap = 0; tap < geometry.kernel[i + 1]; ++tap) {
      const int64_t at = TapAt(geometry, i + 1, tap);
      residues[i].push_back(at % stride);
      reach[i] = std::max(reach[i], at / stride);
    }
    std::sort(residues[i].begin(), residues[i].end());
    residues[i].erase(std::unique(residues[i].begin(), residues[i].end()), residues[i].end());
  }
}

std::optional<PlaneStrips> SharedStrips(const Geometry& geometry, int planes) {
  constexpr int64_t kStripBytes = 512 << 10, kMostStripBytes = 2 << 20;
  const auto& [depth, height, width] = geometry.kernel;
  if (geometry.out[0] != 1 || depth != 1 || geometry.stride[0] != 1 || geometry.pad[0] != 0 ||
      geometry.in[0] != 1 || height * width == 1)
    return std::nullopt;
  const WindowLines window(geometry);
  const auto planes_of_image =
      static_cast<int64_t>(window.residues[0].size() * window.residues[1].size());
  const int64_t row_lines = geometry.out[2] + window.reach[1];
  const int64_t row_bytes =
      planes_of_image * row_lines * planes * DivUp(geometry.ic, kPlaneStep) * kPlaneLineBytes;
  const int64_t most = std::max<int64_t>(1, kStripBytes / row_bytes - window.reach[0]);
  const int64_t rows = DivUp(geometry.out[1], DivUp(geometry.out[1], most));
  const int64_t plane_lines = (rows + window.reach[0]) * row_lines;
  if (row_bytes * (1 + window.reach[0]) > kMostStripBytes) return std::nullopt;
  PlaneStrips strips = {.rows = rows * geometry.out[2],
                        .lines = planes_of_image * plane_lines + kPlaneRows,
                        .row_outputs = geometry.out[2],
                        .row_lines = row_lines};
  for (int64_t tap = 0; tap < height * width; ++tap) {
    const int64_t h = TapAt(geometry, 1, tap / width), w = TapAt(geometry, 2, tap % width);
    const auto& [heights, widths] = window.residues;
    const int64_t plane =
        RankOf(heights, h % geometry.stride[1]) * static_cast<int64_t>(widths.size()) +
        RankOf(widths, w % geometry.stride[2]);
    strips.taps.push_back(plane * plane_lines + h / geometry.stride[1] * row_lines +
                          w / geometry.stride[2]);
  }
  return strips;
}

PlaneProductShape PlaneShapeOf(const Geometry& geometry, int planes) {
  PlaneProductShape shape = {.planes = planes,
                             .rows = geometry.out[0] * geometry.out[1] * geometry.out[2],
                             .taps = geometry.kernel[0] * geometry.kernel[1] * geometry.kernel[2],
                             .channels = RoundUp(geometry.ic, int64_t{kPlaneLanes}),
                             .outputs = geometry.oc};
  if (shape.rows == 0) return shape;
  const std::optional<PlaneStrips> shared = SharedStrips(geometry, planes);
  if (!shared) return shape;
  PlaneProductShape other = shape;
  other.strips = *shared;
  return PlaneCycles(other) < PlaneCycles(shape) ? other : shape;
}

const std::byte* WindowRows::Image(int64_t product) const {
  const int64_t groups = windows_.geometry.groups;
  return src_ + product / groups * windows_.strides.image +
         product % groups * windows_.strides.group;
}

void WindowRows::ForEachRun(int64_t product, int64_t row, int rows, int64_t tap,
                            absl::FunctionRef<void(const Run&)> visit) const {
  const Geometry& geometry = windows_.geometry;
  const Spatial taps = {tap / geometry.kernel[2] / geometry.kernel[1],
                        tap / geometry.kernel[2] % geometry.kernel[1], tap % geometry.kernel[2]};
  for (int first = 0; first < rows;) {
    const int64_t pixel = row + first, width = geometry.out[2];
    const int count = static_cast<int>(std::min<int64_t>(rows - first, width - pixel % width));
    const Spatial out = {pixel / width / geometry.out[1], pixel / width % geometry.out[1],
                         pixel % width};
    Spatial first_src;
    for (int d = 0; d < 3; ++d)
      first_src[d] = out[d] * geometry.stride[d] + TapAt(geometry, d, taps[d]) - geometry.pad[d];
    VisitPixels(Image(product), first_src, first, count, visit);
    first += count;
  }
}

void WindowRows::ForEachLine(int64_t product, int64_t row, int64_t rows,
                             absl::FunctionRef<void(const Run&)> visit) const {
  const Geometry& geometry = windows_.geometry;
  const WindowLines window(geometry);
  const int64_t width = geometry.out[2], row_lines = width + window.reach[1];
  const int64_t plane_lines = (windows_.strip_rows / width + window.reach[0]) * row_lines;
  int64_t plane = 0;
  for (int64_t height_residue : window.residues[0]) {
    for (int64_t width_residue : window.residues[1]) {
      for (int64_t h = 0; h < rows / width + window.reach[0]; ++h) {
        const Spatial first_src = {
            0, (row / width + h) * geometry.stride[1] + height_residue - geometry.pad[1],
            width_residue - geometry.pad[2]};
        VisitPixels(Image(product), first_src, static_cast<int>(plane + h * row_lines),
                    static_cast<int>(row_lines), visit);
      }
      plane += plane_lines;
    }
  }
}

// `count` pixels of a row of src, as far apart as those of neighbours of dst, from `first_src` on:
// zeros in the padding.
void WindowRows::VisitPixels(const std::byte* image, const Spatial& first_src, int first, int count,
                             absl::FunctionRef<void(const Run&)> visit) const {
  const Geometry& geometry = windows_.geometry;
  const auto& [depth, height, width] = first_src;
  const int64_t step = geometry.stride[2];
  const bool inside =
      depth >= 0 && depth < geometry.in[0] && height >= 0 && height < geometry.in[1];
  int begin = count, end = count;  // of the pixels inside src
  if (inside) {
    begin = static_cast<int>(std::clamp<int64_t>(DivUp(-width, step), 0, count));
    end = static_cast<int>(std::clamp<int64_t>(DivUp(geometry.in[2] - width, step), begin, count));
  }
  const Spatial& strides = windows_.strides.spatial;
  if (begin > 0) visit({.first = first, .rows = begin});
  if (end > begin) {
    const std::byte* from =
        image + depth * strides[0] + height * strides[1] + (width + begin * step) * strides[2];
    visit(
        {.first = first + begin, .rows = end - begin, .src = from, .row_bytes = step * strides[2]});
  }
  if (count > end) visit({.first = first + end, .rows = count - end});
}

}  // namespace tilewire::convolution
