// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/ranges.h"

#include <atomic>
#include <vector>

#include "gtest/gtest.h"

namespace tilewire::threading {
namespace {

TEST(RangesTest, EveryItemIsTakenOnce) {
  for (const int64_t count : {0, 1, 7, 8, 9, 100}) {
    for (const int64_t at_once : {1, 8, 200}) {
      std::vector<std::atomic<int>> taken(count);
      ParallelForItems(Team::Serial(), count, at_once, [&](int64_t item) { ++taken[item]; });
      for (const std::atomic<int>& times : taken) EXPECT_EQ(times, 1) << count << " " << at_once;
    }
  }
}

TEST(RangesTest, RangesHaveTheItemsOfAPiece) {
  int64_t covered = 0;
  ParallelForRanges(Team::Serial(), 20, 8, [&](int64_t first, int64_t end) {
    EXPECT_EQ(first, covered);
    EXPECT_EQ(end, first == 16 ? 20 : first + 8);
    covered = end;
  });
  EXPECT_EQ(covered, 20);
}

TEST(RangesTest, AtLeastOneItemAtOnce) {
  EXPECT_EQ(ItemsAtOnce(100, 30), 3);
  EXPECT_EQ(ItemsAtOnce(100, 101), 1);
  EXPECT_EQ(ItemsAtOnce(100, 0), 100);
}

}  // namespace
}  // namespace tilewire::threading
