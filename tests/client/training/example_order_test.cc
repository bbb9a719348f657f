// SPDX-License-Identifier: Apache-2.0
#include "client/training/example_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tilewire::testing::StatusIs;

ExampleOrder OrderOf(int64_t count, double hold_out, uint64_t seed) {
  return *ExampleOrder::Create(count, hold_out, seed);
}

TEST(ExampleOrder, EachExampleIsHeldOutOrTrainedOnOnceInEveryEpoch) {
  for (const double share : {0.0, 0.1, 0.25, 0.9}) {
    const ExampleOrder order = OrderOf(1000, share, 7);
    EXPECT_EQ(order.held_out().size(), 1000 * share);
    EXPECT_EQ(order.trained_count(), 1000 - 1000 * share);
    for (const int64_t epoch : {1, 2, 1000}) {
      std::vector<int64_t> all = order.OfEpoch(epoch);
      all.insert(all.end(), order.held_out().begin(), order.held_out().end());
      std::sort(all.begin(), all.end());
      ASSERT_EQ(all.size(), 1000);
      for (int64_t i = 0; i < 1000; ++i) ASSERT_EQ(all[i], i);
    }
  }
}

TEST(ExampleOrder, DependsOnSeedAndEpochAndOnNothingElse) {
  const ExampleOrder order = OrderOf(100, 0.2, 1), same = OrderOf(100, 0.2, 1);
  const std::vector<int64_t> third = order.OfEpoch(3);
  EXPECT_EQ(order.held_out(), same.held_out());
  EXPECT_EQ(same.OfEpoch(3), third) << "also if epochs 1 and 2 were not asked for";
  EXPECT_NE(order.OfEpoch(4), third);
  for (const uint64_t seed : {uint64_t{2}, uint64_t{1} << 32, uint64_t{1} << 53}) {
    EXPECT_NE(OrderOf(100, 0.2, seed).held_out(), order.held_out()) << seed;
    EXPECT_NE(OrderOf(100, 0.2, seed).OfEpoch(3), third) << seed;
  }
}

// A training that is repeated on another machine must see the same order.
TEST(ExampleOrder, IsTheSameOnEveryMachine) {
  EXPECT_THAT(OrderOf(6, 0, 1).OfEpoch(1), ElementsAre(4, 3, 2, 1, 0, 5));
}

TEST(ExampleOrder, EveryPlaceIsAsLikelyAsTheOthers) {
  std::vector<int> first(4, 0);
  const ExampleOrder order = OrderOf(4, 0, 3);
  for (int64_t epoch = 1; epoch <= 4000; ++epoch) ++first[order.OfEpoch(epoch)[0]];
  // Five standard deviations of a count of 4000 with a probability of 1/4.
  for (const int count : first) EXPECT_NEAR(count, 1000, 5 * 27.4);
}

TEST(ExampleOrder, RefusesSharesThatLeaveNothing) {
  const struct {
    int64_t count;
    double share;
    const char* message;
  } kCases[] = {
      {10, 1, "--hold_out=1 is not a share from 0 to below 1"},
      {10, -0.1, "--hold_out=-0.1 is not a share"},
      {10, std::nan(""), "--hold_out=nan is not a share"},
      {4, 0.1, "--hold_out=0.1 of 4 examples holds out 0 and leaves 4"},
      {4, 0.99, "--hold_out=0.99 of 4 examples holds out 4 and leaves 0"},
      {0, 0, "--hold_out=0 of 0 examples"},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(ExampleOrder::Create(one.count, one.share, 1),
                StatusIs(absl::StatusCode::kInvalidArgument, one.message));
  }
}

TEST(Batches, TheLastOneHasWhatIsLeft) {
  const std::vector<int64_t> examples = {5, 3, 8, 1, 4};
  EXPECT_THAT(Batches(examples, 2),
              ElementsAre(ElementsAre(5, 3), ElementsAre(8, 1), ElementsAre(4)));
  EXPECT_THAT(Batches(examples, 5), ElementsAre(ElementsAre(5, 3, 8, 1, 4)));
  EXPECT_THAT(Batches(examples, 100), ElementsAre(ElementsAre(5, 3, 8, 1, 4)));
  EXPECT_THAT(Batches({}, 2), IsEmpty());
}

}  // namespace
}  // namespace tilewire::client
