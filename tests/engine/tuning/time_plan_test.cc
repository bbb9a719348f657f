// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/time_plan.h"

#include <string>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tuning::ExampleCounts;
using tuning::TimePlan;

// A transformer: 20 s had been exceeded by 80 s for 300 pictures.
const ExampleCounts kAll = {150, 150};
TimePlan SlowIn(absl::Duration time) {
  return TimePlan(time, absl::Milliseconds(500), absl::Milliseconds(100));
}

TEST(TimePlanTest, AllExamplesStayWhereThereIsTime) {
  const TimePlan plan = SlowIn(absl::Minutes(5));
  EXPECT_GT(plan.Least(kAll), absl::Seconds(100));
  const auto counts = plan.Fit(kAll, 2 * plan.Least(kAll));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->chosen, 150);
  EXPECT_EQ(counts->held_out, 150);
}

TEST(TimePlanTest, WhatIsLeftFitsTheTime) {
  for (int seconds : {100, 150, 200, 250}) {
    const absl::Duration time = absl::Seconds(seconds);
    const TimePlan plan = SlowIn(time);
    const auto counts = plan.Fit(kAll, time);
    ASSERT_TRUE(counts.ok()) << counts.status();
    EXPECT_LT(counts->chosen, 150) << seconds;
    EXPECT_LE(plan.Least(*counts), time / 2);
    EXPECT_GT(plan.Least({counts->chosen + 1, counts->held_out + 1}), time / 2);
  }
}

TEST(TimePlanTest, TheLeastMayTakeMoreThanHalfOfTheTime) {
  const TimePlan plan = SlowIn(absl::Seconds(30));
  ASSERT_GT(plan.Least({16, 16}), absl::Seconds(15));
  const auto counts = plan.Fit(kAll, absl::Seconds(30));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->chosen, 16);
  EXPECT_EQ(counts->held_out, 16);
}

TEST(TimePlanTest, TooLittleIsRefusedWithWhatWouldBeEnough) {
  const auto none = SlowIn(absl::Seconds(10)).Fit(kAll, absl::Seconds(9));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(
      std::string(none.status().message()),
      AllOf(HasSubstr("a time of 10s is not enough: a run takes 100 ms and a file 500 ms to "
                      "load, so that 16 examples to choose by and 16 to check with need "),
            HasSubstr("s at least, and all 150 and 150 2m")));
  // Two examples are all that there is: both are taken.
  EXPECT_TRUE(SlowIn(absl::Seconds(10)).Fit({1, 1}, absl::Seconds(9)).ok());
}

// A time of next to nothing is a second, which is plenty for a model that runs in microseconds.
TEST(TimePlanTest, ASmallModelNeedsNoTime) {
  const TimePlan plan(absl::Nanoseconds(1), absl::Milliseconds(2), absl::Microseconds(50));
  const auto counts = plan.Fit({180, 180}, -absl::Seconds(5));
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->held_out, 180);
}

// The 12 s that loading took are needed again, and half a second for each of three turns.
TEST(TimePlanTest, LoadingThatTookAllOfTheTimeIsRefused) {
  const TimePlan plan(absl::Seconds(10), absl::Milliseconds(2), absl::Microseconds(50));
  const auto none = plan.Fit({180, 180}, -absl::Seconds(2));
  EXPECT_EQ(none.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(none.status().message()),
              HasSubstr("16 to check with need 14s at least, and all 180 and 180 14s"));
  EXPECT_TRUE(plan.Fit({180, 180}, absl::Seconds(2)).ok());
}

// A pass over all tensors takes about four trials; on a busy machine, two passes of a ResNet-50
// left nothing to the descent.
TEST(TimePlanTest, FewerExamplesAreObservedWhereTimeIsShort) {
  const absl::Duration trial = absl::Seconds(10);
  EXPECT_EQ(TimePlan::Observable(300, trial, absl::Seconds(40)), 300);
  EXPECT_EQ(TimePlan::Observable(300, trial, absl::Seconds(10)), 75);
  EXPECT_EQ(TimePlan::Observable(300, trial, absl::Seconds(2)), 0);
  EXPECT_EQ(TimePlan::Observable(300, trial, -absl::Seconds(2)), 0);
  EXPECT_EQ(TimePlan::Observable(8, absl::ZeroDuration(), absl::InfiniteDuration()), 8);
}

TEST(TimePlanTest, TurnsOfSmallModelsTakeATwentiethAtMost) {
  EXPECT_EQ(TimePlan::MostOfTurns(absl::Minutes(5)), absl::Seconds(15));
  EXPECT_EQ(TimePlan::MostOfTurns(absl::Nanoseconds(1)), absl::Milliseconds(50));
  // Six loads and a seventh with the trial of no example, and half a second for each three turns.
  const TimePlan plan(absl::Minutes(5), absl::Milliseconds(1), absl::Microseconds(1));
  EXPECT_EQ(plan.Check({}), absl::Milliseconds(7) + 3 * absl::Milliseconds(500));
}

}  // namespace
}  // namespace tilewire::testing
