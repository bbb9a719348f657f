// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/integer/matrix_tiling.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::convolution {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<int64_t> SizesOf(const std::vector<Range>& ranges) {
  std::vector<int64_t> sizes;
  for (const Range& range : ranges) sizes.push_back(range.size);
  return sizes;
}

TEST(MatrixTilingTest, TilesAreFewThenOfOneSize) {
  EXPECT_THAT(SizesOf(MatrixTiling(56, 4).tiles), ElementsAre(28, 28));
  EXPECT_THAT(SizesOf(MatrixTiling(40, 4).tiles), ElementsAre(32, 8));
  EXPECT_THAT(SizesOf(MatrixTiling(7, 1).tiles), ElementsAre(7));
  EXPECT_THAT(SizesOf(MatrixTiling(7, 5).oc_groups), ElementsAre(2, 2, 1));
}

// As many as read half of the first cache; all, where one alone reads more.
TEST(MatrixTilingTest, TilesOfAGroupOfOutputsReadHalfOfTheFirstCache) {
  Geometry geometry;
  geometry.ic = 64 / 4;
  geometry.out = {1, 56, 56};
  EXPECT_EQ(TilesAtOnce(geometry), 24 * 1024 / (32 * 64));
  geometry.kernel = {1, 3, 3};
  EXPECT_EQ(TilesAtOnce(geometry), 24 * 1024 / (3 * 34 * 64));
  geometry.ic = 2048 / 4;
  EXPECT_GT(TilesAtOnce(geometry), 1'000'000);
}

// The geometry of a padded copy with one pixel around it.
Geometry Plane(int64_t height, int64_t width, int64_t kernel = 3) {
  Geometry geometry;
  geometry.in = {1, height + kernel - 1, width + kernel - 1};
  geometry.out = {1, height, width};
  geometry.kernel = {1, kernel, kernel};
  return geometry;
}

TEST(MatrixTilingTest, SevenBySevenBecomesARowOfFourTiles) {
  Geometry geometry = Plane(7, 7);
  const Spatial src = {0, 9 * 64, 64}, dst = {0, 7 * 48, 48};
  const auto plane = FlattenNarrowPlane(&geometry, src, dst);
  ASSERT_TRUE(plane.has_value());
  EXPECT_EQ(geometry.out, (Spatial{1, 1, 61}));
  EXPECT_EQ(geometry.in, (Spatial{1, 3, 63}));
  // Pixels 30 to 60 of the long row: the last four of row 3, which begins with 27, and rows 4 to 6.
  EXPECT_THAT(
      RunsOf(*plane, {30, 31}, dst),
      ElementsAre(PixelRun{0, 4, (3 * 7 + 3) * 48 - 30 * 48}, PixelRun{6, 7, 4 * 7 * 48 - 30 * 48},
                  PixelRun{15, 7, 5 * 7 * 48 - 30 * 48}, PixelRun{24, 7, 6 * 7 * 48 - 30 * 48}));
  EXPECT_THAT(RunsOf(*plane, {7, 2}, dst), IsEmpty());  // between two rows
}

TEST(MatrixTilingTest, OnlyNarrowDensePlanesAreFlattened) {
  const auto is_flattened = [](Geometry geometry, const Spatial& src) {
    const Geometry before = geometry;
    const bool flattened = FlattenNarrowPlane(&geometry, src, {0, 14 * 64, 64}).has_value();
    EXPECT_EQ(flattened, geometry.out != before.out);
    return flattened;
  };
  EXPECT_TRUE(is_flattened(Plane(14, 14), {0, 16 * 64, 64}));
  EXPECT_FALSE(is_flattened(Plane(17, 17), {0, 19 * 64, 64}));    // wide
  EXPECT_FALSE(is_flattened(Plane(7, 7), {0, 9 * 64 + 32, 64}));  // rows apart by half a pixel
  EXPECT_FALSE(is_flattened(Plane(7, 7), {0, 64, 9 * 64}));       // turned
  EXPECT_FALSE(is_flattened(Plane(4, 14), {0, 40 * 64, 64}));     // more tiles than rows
  EXPECT_FALSE(is_flattened(Plane(100, 14), {0, 16 * 64, 64}));   // too much code
  Geometry strided = Plane(7, 7);
  strided.stride = {1, 2, 2};
  EXPECT_FALSE(is_flattened(strided, {0, 16 * 64, 64}));
}

}  // namespace
}  // namespace tilewire::convolution
