// SPDX-License-Identifier: Apache-2.0
#include "engine/training/average.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace tilewire::training {
namespace {

TEST(AverageTest, FollowsItsFormulaOnAnyThreads) {
  threading::Arena arena(7);
  constexpr int64_t kCount = 40000;
  for (const double decay : {0.25, 0.999}) {
    std::vector<float> first;
    for (const int threads : {1, 2, 7}) {
      std::vector<float> value(kCount), average(kCount, 1), short_value = {5}, short_average = {1};
      double exact = 1;
      for (int64_t step = 1; step <= 30; ++step) {
        for (int64_t i = 0; i < kCount; ++i)
          value[i] = static_cast<float>(step) + static_cast<float>(i % 3);
        MoveAverages(
            decay, step,
            {{value, absl::MakeSpan(average)}, {short_value, absl::MakeSpan(short_average)}},
            threading::Team(&arena, threads));
        const double kept = std::min(decay, (1.0 + step) / (10.0 + step));
        exact = kept * exact + (1 - kept) * static_cast<double>(step);
      }
      EXPECT_NEAR(average[0], exact, 1e-4);
      EXPECT_NEAR(average[kCount - 1], exact, 1e-4);
      EXPECT_NEAR(average[1] - average[0], average[4] - average[3], 1e-4);
      EXPECT_GT(average[2], average[1]);
      EXPECT_GT(short_average[0], 1);
      if (first.empty()) first = average;
      EXPECT_EQ(first, average) << threads;
    }
  }
}

}  // namespace
}  // namespace tilewire::training
