// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/time_slice.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace tilewire::service {
namespace {

TEST(TimeSliceTest, IsThatOfTheThreadAndOfThoseThatItMakes) {
  bool has_short_slices = false;
  uint64_t ordinary = 0, asked = 0, inherited = 0, restored = 0;
  std::thread([&] {
    ordinary = SliceOfThisThread();
    has_short_slices = AskForShortSlices();
    asked = SliceOfThisThread();
    std::thread([&] { inherited = SliceOfThisThread(); }).join();
    AskForOrdinarySlices();
    restored = SliceOfThisThread();
  }).join();
  EXPECT_EQ(restored, ordinary);
  if (!has_short_slices) GTEST_SKIP() << "the system has no slices that a thread asks for";
  EXPECT_LT(asked, ordinary);
  EXPECT_EQ(inherited, asked);
  EXPECT_EQ(SliceOfThisThread(), ordinary) << "a thread that asked changed this one's";
}

}  // namespace
}  // namespace tilewire::service
