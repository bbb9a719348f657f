// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/planes/plane_windows.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kBytesOfPixel = 64;

struct WindowsCase {
  const char* why;
  Spatial in, kernel, stride = {1, 1, 1}, tap_step = {1, 1, 1}, pad = {0, 0, 0};
  int64_t channels = 32;
};

const WindowsCase kWindowsCases[] = {
    {"3x3", {1, 9, 7}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}},
    {"3x3 with stride 2", {1, 15, 14}, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 1, 1}},
    {"another stride along each", {1, 17, 20}, {1, 5, 4}, {1, 2, 3}, {1, 1, 1}, {0, 2, 0}},
    {"dilated by the stride: one residue", {1, 20, 20}, {1, 3, 3}, {1, 2, 2}, {1, 2, 2}, {0, 2, 2}},
    {"dilated by more than the stride", {1, 21, 22}, {1, 2, 3}, {1, 2, 2}, {1, 3, 5}, {0, 1, 4}},
    {"1x7", {1, 5, 40}, {1, 1, 7}, {1, 1, 1}, {1, 1, 1}, {0, 0, 3}},
    {"stride beyond the kernel", {1, 16, 16}, {1, 2, 2}, {1, 4, 3}},
    {"several strips", {1, 50, 60}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, 512},
};

Geometry GeometryOfCase(const WindowsCase& c) {
  Geometry geometry = {.batch = 2, .ic = c.channels, .oc = 32};
  geometry.in = c.in;
  geometry.kernel = c.kernel;
  geometry.stride = c.stride;
  geometry.tap_step = c.tap_step;
  geometry.pad = c.pad;
  for (int d = 0; d < 3; ++d) {
    const int64_t reach = (c.kernel[d] - 1) * c.tap_step[d];
    geometry.out[d] = (c.in[d] + 2 * c.pad[d] - reach - 1) / c.stride[d] + 1;
  }
  return geometry;
}

// The source that is read for each row or line of some runs, counted from the first; null where it
// is padding.
using Sources = std::map<int64_t, const std::byte*>;

void Note(const PlaneRows::Run& run, Sources* sources) {
  for (int i = 0; i < run.rows; ++i) {
    const std::byte* src = run.src == nullptr ? nullptr : run.src + i * run.row_bytes;
    EXPECT_TRUE(sources->try_emplace(run.first + i, src).second) << "twice: " << run.first + i;
  }
}

// A tap of a row reads the line that is as far from the row's as the tap's is from the first row's.
TEST(PlaneWindowsTest, SharedLinesAreWhatWindowsRead) {
  for (const WindowsCase& c : kWindowsCases) {
    SCOPED_TRACE(c.why);
    const Geometry geometry = GeometryOfCase(c);
    const auto strips = SharedStrips(geometry, /*planes=*/2);
    ASSERT_TRUE(strips.has_value());
    Windows windows = {geometry, {}, strips->rows};
    windows.strides.image = geometry.in[1] * geometry.in[2] * kBytesOfPixel;
    windows.strides.spatial = {0, geometry.in[2] * kBytesOfPixel, kBytesOfPixel};
    const std::vector<std::byte> src(2 * windows.strides.image);
    const WindowRows rows(windows, src.data());
    const int64_t all = geometry.out[1] * geometry.out[2];
    for (int64_t row = 0; row < all; row += strips->rows) {
      const int64_t count = std::min(strips->rows, all - row);
      Sources lines;
      rows.ForEachLine(1, row, count, [&](const PlaneRows::Run& run) { Note(run, &lines); });
      EXPECT_LT(lines.rbegin()->first, strips->lines);
      for (int64_t tap = 0; tap < geometry.kernel[1] * geometry.kernel[2]; ++tap) {
        Sources windows_read;
        rows.ForEachRun(1, row, static_cast<int>(count), tap,
                        [&](const PlaneRows::Run& run) { Note(run, &windows_read); });
        for (int64_t i = 0; i < count; ++i) {
          const int64_t line = strips->LinesOf(i + 1) - 1 + strips->taps[tap];
          ASSERT_TRUE(lines.contains(line)) << row << " " << tap << " " << i;
          ASSERT_EQ(lines[line], windows_read[i]) << row << " " << tap << " " << i;
        }
      }
    }
  }
}

TEST(PlaneWindowsTest, LinesOfStripsAndRowsAreEachOthersInverse) {
  const PlaneStrips strips = {.rows = 35, .lines = 100, .row_outputs = 7, .row_lines = 9};
  for (int64_t row = 0; row < 35; ++row) {
    const int64_t line = strips.LinesOf(row + 1) - 1;
    EXPECT_EQ(strips.RowsBefore(line), row);
    EXPECT_EQ(strips.RowsBefore(line + 1), row + 1);
  }
}

// The tiles of a strip read nothing after its rows that does not belong to it.
TEST(PlaneWindowsTest, TilesEndInsideTheLines) {
  for (const WindowsCase& c : kWindowsCases) {
    const auto strips = SharedStrips(GeometryOfCase(c), /*planes=*/1);
    const int64_t last_tile = (strips->LinesOf(strips->rows) - 1) / kPlaneRows * kPlaneRows;
    for (int64_t tap : strips->taps)
      EXPECT_LE(last_tile + kPlaneRows + tap, strips->lines) << c.why;
  }
}

TEST(PlaneWindowsTest, OnlyWindowsThatOverlapShareLines) {
  EXPECT_FALSE(SharedStrips(GeometryOfCase({"1x1", {1, 8, 8}, {1, 1, 1}}), 1).has_value());
  EXPECT_FALSE(SharedStrips(GeometryOfCase({"3D", {4, 8, 8}, {2, 2, 2}}), 1).has_value());
}

// Three planes of 7x7 pixels are multiplied in fuller tiles where no line is shared.
TEST(PlaneWindowsTest, CyclesDecide) {
  const Geometry large =
      GeometryOfCase({"", {1, 28, 28}, {1, 3, 3}, {1, 1, 1}, {1, 1, 1}, {0, 1, 1}, 128});
  for (int planes : {1, 2, 3}) EXPECT_TRUE(PlaneShapeOf(large, planes).strips.AreShared());
  const Geometry apart = GeometryOfCase({"stride 4", {1, 32, 32}, {1, 2, 2}, {1, 4, 4}});
  EXPECT_FALSE(PlaneShapeOf(apart, 1).strips.AreShared());
}

}  // namespace
}  // namespace tilewire::convolution
