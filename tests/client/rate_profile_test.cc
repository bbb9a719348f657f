// SPDX-License-Identifier: Apache-2.0
#include "client/load/rate_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

double SecondsOf(const RateProfile& profile, double count) {
  return absl::ToDoubleSeconds(profile.TimeOf(count));
}

TEST(RateProfile, StagesFollowEachOther) {
  const auto profile = RateProfile::Parse("100:10s,100-300:20s");
  ASSERT_THAT(profile, IsOk());
  EXPECT_EQ(profile->length(), absl::Seconds(30));
  EXPECT_FALSE(profile->is_constant());
  EXPECT_EQ(profile->RateAt(absl::Seconds(5)), 100);
  EXPECT_EQ(profile->RateAt(absl::Seconds(20)), 200);
  EXPECT_EQ(profile->RateAt(absl::Hours(1)), 300);
  EXPECT_NEAR(SecondsOf(*profile, 500), 5, 1e-9);
  // The ramp's integral: 100 t + 5 t^2 requests after t seconds of it.
  EXPECT_NEAR(SecondsOf(*profile, 1000 + 1000 + 500), 20, 1e-9);
  EXPECT_NEAR(SecondsOf(*profile, 1000 + 4000), 30, 1e-9);
  EXPECT_NEAR(SecondsOf(*profile, 1000 + 4000 + 300), 31, 1e-9);
}

TEST(RateProfile, RampsMayFall) {
  const auto profile = RateProfile::Parse("300-100:20s");
  ASSERT_THAT(profile, IsOk());
  EXPECT_NEAR(SecondsOf(*profile, 300 * 10 - 5 * 100), 10, 1e-9);
}

TEST(RateProfile, AWarmUpKeepsTheFirstRate) {
  const RateProfile warm = RateProfile(50).After(absl::Seconds(2));
  EXPECT_TRUE(warm.is_constant());
  EXPECT_NEAR(SecondsOf(warm, 100), 2, 1e-9);
  EXPECT_NEAR(SecondsOf(warm, 150), 3, 1e-9);
}

TEST(RateProfile, NoProfileSendsNothing) {
  EXPECT_EQ(RateProfile().TimeOf(1), absl::InfiniteDuration());
}

TEST(RateProfile, RefusesOtherWords) {
  for (const char* text : {"", "100", "100:", ":1s", "100:1", "0:1s", "-5:1s", "100-:1s", "nan:1s",
                           "inf:1s", "100:1s,", "100:0s", "100:inf", "100:1s:2s"})
    EXPECT_THAT(RateProfile::Parse(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
}

}  // namespace
}  // namespace tilewire::client
