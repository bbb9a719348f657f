// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/core_state.h"

#include "engine/cpu/isa.h"
#include "gtest/gtest.h"

namespace tilewire::bench {
namespace {

TEST(CoreStateTest, EachMomentHasAStateWhereThereAreTiles) {
  const CoreProbe probe;
  EXPECT_EQ(probe.Now() != CoreState::kUnknown, cpu::Supports(cpu::Isa::kAmx));
}

TEST(CoreStateTest, OnlyWhatBeginsAndEndsInAStateCountsForIt) {
  EXPECT_EQ(Both(CoreState::kBusy, CoreState::kBusy), CoreState::kBusy);
  EXPECT_EQ(Both(CoreState::kQuiet, CoreState::kBusy), CoreState::kBetween);
  EXPECT_EQ(Both(CoreState::kUnknown, CoreState::kUnknown), CoreState::kUnknown);
}

TEST(CoreStateTest, PairsInNeitherStateCountOnlyWhereThereAreNoOthers) {
  TimesByState times;
  times[CoreState::kBetween].Add(1, 3);
  EXPECT_EQ(WithoutBetween(times).count(CoreState::kBetween), 1);
  times[CoreState::kQuiet].Add(2, 3);
  const TimesByState left = WithoutBetween(times);
  ASSERT_EQ(left.size(), 1);
  EXPECT_EQ(left.begin()->second.ratios, std::vector<double>{1.5});
}

}  // namespace
}  // namespace tilewire::bench
