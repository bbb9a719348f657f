// SPDX-License-Identifier: Apache-2.0
#include "client/latencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewire::client {
namespace {

TEST(Latencies, PercentilesAreNearestRank) {
  Latencies latencies;
  EXPECT_EQ(latencies.Percentile(50), absl::ZeroDuration());
  for (int ms = 100; ms >= 1; --ms) latencies.Add(absl::Milliseconds(ms));
  struct Case {
    const char* why;
    double percent;
    int ms;
  };
  constexpr Case kCases[] = {
      {"the smallest", 0, 1},           {"half of 100 values", 50, 50}, {"rounded up", 50.1, 51},
      {"one value lies above", 99, 99}, {"the largest", 100, 100},
  };
  for (const Case& c : kCases) {
    const absl::Duration exact = absl::Milliseconds(c.ms);
    EXPECT_GE(latencies.Percentile(c.percent), exact) << c.why;
    EXPECT_LE(latencies.Percentile(c.percent), exact + exact / Latencies::kSteps) << c.why;
  }
  EXPECT_EQ(latencies.Percentile(0), absl::Milliseconds(1));
  EXPECT_EQ(latencies.Percentile(100), absl::Milliseconds(100));
  EXPECT_EQ(latencies.Mean(), absl::Microseconds(50'500));
  Latencies more;
  more.Add(absl::Seconds(1));
  more.Merge(latencies);
  EXPECT_EQ(more.count(), 101);
  EXPECT_EQ(more.Percentile(100), absl::Seconds(1));
}

TEST(Latencies, APercentileNeedsDurationsBeyondIt) {
  struct Case {
    double percent;
    int64_t fewest;
  };
  for (const auto& [percent, fewest] : std::vector<Case>{
           {0, 1}, {50, 2}, {90, 10}, {95, 20}, {99, 100}, {99.9, 1000}, {99.99, 10'000}, {100, 1}})
    EXPECT_EQ(Latencies::FewestFor(percent), fewest) << percent;
  Latencies latencies;
  EXPECT_EQ(PercentileText(latencies, 50), "-");
  for (int i = 0; i < 5; ++i) latencies.Add(absl::Milliseconds(1));
  EXPECT_EQ(latencies.ToString(), "p50 1.00 ms, max 1.00 ms");
  EXPECT_EQ(PercentileText(latencies, 99), "-");
  for (int i = 5; i < 100; ++i) latencies.Add(absl::Milliseconds(1));
  EXPECT_EQ(latencies.ToString(), "p50 1.00 ms, p90 1.00 ms, p99 1.00 ms, max 1.00 ms");
  EXPECT_EQ(latencies.CountBeyond(90), 10);
  EXPECT_EQ(latencies.CountBeyond(99), 1);
}

TEST(Latencies, CountsThoseAboveABound) {
  Latencies latencies;
  EXPECT_EQ(latencies.CountAbove(absl::ZeroDuration()), 0);
  for (int ms = 1; ms <= 100; ++ms) latencies.Add(absl::Milliseconds(ms));
  EXPECT_EQ(latencies.CountAbove(absl::ZeroDuration()), 100);
  EXPECT_EQ(latencies.CountAbove(absl::Milliseconds(60)), 40);
  EXPECT_EQ(latencies.CountAbove(absl::Milliseconds(100)), 0);
  EXPECT_EQ(latencies.CountAbove(absl::InfiniteDuration()), 0);
}

TEST(Latencies, EveryDurationIsWithinAStepOfItsBucket) {
  for (double ns = 1; ns < 1e13; ns *= 1.37) {
    const absl::Duration exact = absl::Nanoseconds(static_cast<int64_t>(ns));
    Latencies latencies;
    latencies.Add(absl::ZeroDuration());
    latencies.Add(exact);
    latencies.Add(absl::Hours(24));
    EXPECT_GE(latencies.Percentile(60), exact);
    EXPECT_LE(latencies.Percentile(60), exact + exact / Latencies::kSteps);
  }
}

TEST(LatencyText, TakesTheUnitThatFits) {
  EXPECT_EQ(LatencyText(absl::Nanoseconds(812)), "812 ns");
  EXPECT_EQ(LatencyText(absl::Nanoseconds(999'600)), "1.00 ms");
  EXPECT_EQ(LatencyText(absl::Microseconds(1234)), "1.23 ms");
  EXPECT_EQ(LatencyText(absl::Microseconds(12'340)), "12.3 ms");
  EXPECT_EQ(LatencyText(absl::Milliseconds(187)), "187 ms");
  EXPECT_EQ(LatencyText(absl::Milliseconds(1870)), "1.87 s");
  EXPECT_EQ(LatencyText(absl::Seconds(600)), "600 s");
}

TEST(Latencies, TheirBucketsMakeThemAgain) {
  Latencies latencies;
  for (int i = 1; i <= 1000; ++i) latencies.Add(absl::Microseconds(i * i));
  const Latencies same = Latencies::FromBuckets(latencies.Buckets(), latencies.sum(),
                                                latencies.Percentile(0), latencies.Percentile(100));
  EXPECT_EQ(same.count(), 1000);
  EXPECT_EQ(same.Mean(), latencies.Mean());
  for (const double percent : {0.0, 1.0, 50.0, 99.0, 99.9, 100.0})
    EXPECT_EQ(same.Percentile(percent), latencies.Percentile(percent)) << percent;
  const Latencies none = Latencies::FromBuckets({}, {}, {}, {});
  EXPECT_EQ(none.Percentile(99), absl::ZeroDuration());
}

}  // namespace
}  // namespace tilewire::client
