// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/matrix_plan.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(MatrixPlanTest, AWholeTileLoadsFiveOperandsForFourProducts) {
  EXPECT_THAT(
      MatrixProductsOf(2, 2),
      ElementsAre(MatrixProduct{0, 0, true, true, 1}, MatrixProduct{0, 1, false, true, 1},
                  MatrixProduct{1, 1, true, false, 1}, MatrixProduct{1, 0, false, true, 1}));
}

TEST(MatrixPlanTest, EveryShapeHasAllProductsAndOneStepsShareOfTheEnd) {
  for (const int blocks : {1, 2}) {
    for (const int halves : {1, 2}) {
      std::set<std::pair<int, int>> sums;
      int parts = 0;
      for (const MatrixProduct& product : MatrixProductsOf(blocks, halves)) {
        sums.insert({product.block, product.half});
        parts += product.parts;
      }
      EXPECT_THAT(sums, SizeIs(blocks * halves));
      EXPECT_EQ(parts, kMatrixPartsOfStep);
    }
  }
}

TEST(MatrixPlanTest, StepsFollowTheOrderOfTheWeights) {
  const TapLoops loops = {.src_block = 64, .src_tap = {10000, 1000, 100}, .kernel = {1, 2, 3}};
  EXPECT_THAT(MatrixStepsOf(loops, 2), ElementsAre(0, 100, 200, 1000, 1100, 1200,  //
                                                   64, 164, 264, 1064, 1164, 1264));
  const TapLoops deep = {.src_block = 64, .src_tap = {10000, 1000, 100}, .kernel = {2, 1, 1}};
  EXPECT_THAT(MatrixStepsOf(deep, 2), ElementsAre(0, 10000, 64, 10064));
}

TEST(MatrixPlanTest, AnEndHasAPartForEachProductUntilEveryPixelHasOne) {
  EXPECT_EQ(MatrixEndParts(1), 4);
  EXPECT_EQ(MatrixEndParts(8), 32);
  EXPECT_EQ(MatrixEndParts(72), 32);
}

TEST(MatrixPlanTest, PartsOfAnEndAreEven) {
  const auto end = MatrixEndOf({{0, 17, 0}}, 100, 4);
  EXPECT_THAT(end,
              ElementsAre(ElementsAre(PixelRun{0, 5, 0}), ElementsAre(PixelRun{5, 5, 500}),
                          ElementsAre(PixelRun{10, 5, 1000}), ElementsAre(PixelRun{15, 2, 1500})));
}

TEST(MatrixPlanTest, FewPixelsLeavePartsWithoutAny) {
  const auto end = MatrixEndOf({{0, 2, 0}}, 8, 4);
  EXPECT_THAT(end, ElementsAre(ElementsAre(PixelRun{0, 1, 0}), ElementsAre(PixelRun{1, 1, 8}),
                               IsEmpty(), IsEmpty()));
}

TEST(MatrixPlanTest, PartsOfPixelsThatLieApartHaveSeveralRuns) {
  const auto end = MatrixEndOf({{2, 3, 0}, {9, 3, 700}}, 10, 3);
  EXPECT_THAT(end, ElementsAre(ElementsAre(PixelRun{2, 2, 0}),
                               ElementsAre(PixelRun{4, 1, 20}, PixelRun{9, 1, 700}),
                               ElementsAre(PixelRun{10, 2, 710})));
}

TEST(MatrixPlanTest, TheSumsOfAPartFitHalfOfTheVectorRegisters) {
  for (int64_t steps = 1; steps < 12; ++steps) {
    for (const std::vector<PixelRun>& part : MatrixEndOf({{0, 32, 0}}, 64, MatrixEndParts(steps))) {
      for (const PixelRun& run : part) EXPECT_LE(run.count * 2, 16) << steps << " steps";
    }
  }
}

}  // namespace
}  // namespace tilewire
