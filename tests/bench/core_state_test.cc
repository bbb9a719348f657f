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

}  // namespace
}  // namespace tilewire::bench
