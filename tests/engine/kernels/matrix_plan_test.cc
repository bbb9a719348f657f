// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/matrix_plan.h"

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
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
  for (const int planes : {1, 2, 3}) {
    for (const int blocks : {1, 2}) {
      for (const int halves : {1, 2}) {
        std::set<std::pair<int, int>> sums;
        int parts = 0;
        for (const MatrixProduct& product : MatrixProductsOf(blocks, halves, planes)) {
          sums.insert({product.block, product.half});
          parts += product.parts;
        }
        EXPECT_THAT(sums, SizeIs(blocks * halves));
        EXPECT_EQ(parts, MatrixPartsOfStep(planes));
      }
    }
  }
}

// Each element gets every product of planes that is not left out once, and in one order for all
// rows and numbers of blocks.
TEST(MatrixPlanTest, ProductsOfAnElementAreInOneOrder) {
  for (int planes : {1, 2, 3}) {
    for (int block : {0, 1}) {
      std::set<std::vector<std::pair<int, int>>> orders;
      for (int blocks : {1, 2}) {
        for (int halves : {1, 2}) {
          for (int half = 0; block < blocks && half < halves; ++half) {
            std::vector<std::pair<int, int>> order;
            for (const MatrixProduct& p : MatrixProductsOf(blocks, halves, planes)) {
              if (p.block == block && p.half == half)
                order.emplace_back(p.src_plane, p.weights_plane);
            }
            orders.insert(order);
          }
        }
      }
      ASSERT_THAT(orders, SizeIs(1));
      const std::set<std::pair<int, int>> once(orders.begin()->begin(), orders.begin()->end());
      EXPECT_THAT(once, SizeIs(planes * (planes + 1) / 2));
      EXPECT_THAT(*orders.begin(), SizeIs(once.size()));
      for (const auto& [src, weights] : once) EXPECT_LT(src + weights, planes);
    }
  }
}

// An operand is loaded exactly where the product before it read another one, and that is seldom.
TEST(MatrixPlanTest, ProductsOfPlanesLoadWhatChanges) {
  const size_t most[] = {5, 13, 25};
  for (int planes : {1, 2, 3}) {
    const std::vector<MatrixProduct> products = MatrixProductsOf(2, 2, planes);
    size_t loads = 2;
    EXPECT_TRUE(products[0].loads_weights && products[0].loads_src);
    for (size_t i = 1; i < products.size(); ++i) {
      const MatrixProduct &before = products[i - 1], &product = products[i];
      EXPECT_EQ(product.loads_weights,
                before.block != product.block || before.weights_plane != product.weights_plane);
      EXPECT_EQ(product.loads_src,
                before.half != product.half || before.src_plane != product.src_plane);
      loads += product.loads_weights + product.loads_src;
    }
    EXPECT_LE(loads, most[planes - 1]);
  }
}

TEST(MatrixPlanTest, StepsFollowTheOrderOfTheWeights) {
  const TapLoops loops = {.src_block = 64, .src_tap = {10000, 1000, 100}, .kernel = {1, 2, 3}};
  EXPECT_THAT(MatrixStepsOf(loops, 2), ElementsAre(0, 100, 200, 1000, 1100, 1200,  //
                                                   64, 164, 264, 1064, 1164, 1264));
  const TapLoops deep = {.src_block = 64, .src_tap = {10000, 1000, 100}, .kernel = {2, 1, 1}};
  EXPECT_THAT(MatrixStepsOf(deep, 2), ElementsAre(0, 10000, 64, 10064));
}

int PartsOfEnd(int64_t steps, int planes = 1) {
  return MatrixStepsWithEnd(steps, planes) * MatrixPartsOfStep(planes);
}

TEST(MatrixPlanTest, AnEndHasAPartForEachProductUntilEveryPixelHasOne) {
  EXPECT_EQ(PartsOfEnd(1), 4);
  EXPECT_EQ(PartsOfEnd(8), 32);
  EXPECT_EQ(PartsOfEnd(72), 32);
  EXPECT_EQ(PartsOfEnd(1, 2), 12);
  EXPECT_EQ(PartsOfEnd(72, 2), 36);
  EXPECT_EQ(PartsOfEnd(1, 3), 24);
  EXPECT_EQ(PartsOfEnd(72, 3), 48);
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
    for (const std::vector<PixelRun>& part : MatrixEndOf({{0, 32, 0}}, 64, PartsOfEnd(steps))) {
      for (const PixelRun& run : part) EXPECT_LE(run.count * 2, 16) << steps << " steps";
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
