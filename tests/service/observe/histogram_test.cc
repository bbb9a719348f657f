// SPDX-License-Identifier: Apache-2.0
#include "service/observe/histogram.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

namespace tilewire::service {
namespace {

// The least duration of each bucket but the first, found by bisection, in nanoseconds.
std::vector<int64_t> LowerEnds() {
  std::vector<int64_t> ends;
  for (size_t bucket = 1; bucket < Histogram::kBuckets; ++bucket) {
    int64_t below = 0, from = int64_t{1} << 50;
    while (from - below > 1) {
      const int64_t middle = (below + from) / 2;
      (Histogram::BucketOf(middle) >= bucket ? from : below) = middle;
    }
    ends.push_back(from - 1);
  }
  return ends;
}

TEST(HistogramTest, BucketsAreNoWiderThanATenth) {
  const std::vector<int64_t> ends = LowerEnds();
  EXPECT_EQ(ends.front(), 1000) << "what is shorter is in the first bucket";
  EXPECT_EQ(ends.back(), 100'000'000'000) << "what is longer is in the last bucket";
  for (size_t i = 1; i < ends.size(); ++i) {
    EXPECT_GT(ends[i], ends[i - 1]) << "no bucket is empty";
    EXPECT_LE(10 * (ends[i] - ends[i - 1]), ends[i - 1]) << ends[i - 1];
  }
}

TEST(HistogramTest, TheEndOfABucketIsTheLongestThatItHolds) {
  for (size_t bucket = 0; bucket + 1 < Histogram::kBuckets; ++bucket) {
    EXPECT_EQ(Histogram::BucketOf(Histogram::EndOf(bucket)), bucket);
    EXPECT_EQ(Histogram::BucketOf(Histogram::EndOf(bucket) + 1), bucket + 1);
  }
  EXPECT_EQ(Histogram::EndOf(Histogram::kBuckets - 1), std::numeric_limits<int64_t>::max());
}

TEST(HistogramTest, OneTwoAndFiveEndBuckets) {
  for (int64_t power = 1000; power <= 10'000'000'000; power *= 10) {
    for (const int64_t end : {power, 2 * power, 5 * power}) {
      EXPECT_EQ(Histogram::BucketOf(end) + 1, Histogram::BucketOf(end + 1)) << end;
      Histogram histogram;
      histogram.Record(absl::Nanoseconds(end));
      histogram.Record(absl::Nanoseconds(end + 1));
      EXPECT_EQ(histogram.Sum().CountUpTo(absl::Nanoseconds(end)), 1) << end;
    }
  }
}

TEST(HistogramTest, KeepsWhatNoBucketWasMadeFor) {
  Histogram histogram;
  for (const absl::Duration duration :
       {absl::Nanoseconds(-5), absl::ZeroDuration(), absl::Nanoseconds(1), absl::Hours(1)}) {
    histogram.Record(duration);
  }
  const Histogram::Sums sums = histogram.Sum();
  EXPECT_EQ(sums.buckets.front(), 3);
  EXPECT_EQ(sums.buckets.back(), 1);
  EXPECT_EQ(sums.count, 4);
  EXPECT_EQ(sums.ns, 3'600'000'000'001) << "time that went backwards counts as none";
}

TEST(HistogramTest, LosesNothingWhileAReaderSums) {
  constexpr int kThreads = 8, kEach = 20'000;
  Histogram histogram;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&histogram, &running, t] {
      for (int i = 0; i < kEach; ++i) histogram.Record(absl::Microseconds(1 + t + i % 1000));
      --running;
    });
  }
  int64_t last = 0;
  while (running > 0) {
    const Histogram::Sums sums = histogram.Sum();
    EXPECT_GE(sums.count, last) << "a count went backwards";
    last = sums.count;
  }
  for (std::thread& thread : threads) thread.join();
  const Histogram::Sums sums = histogram.Sum();
  EXPECT_EQ(sums.count, int64_t{kThreads} * kEach);
  int64_t ns = 0;
  for (int t = 0; t < kThreads; ++t) {
    for (int i = 0; i < kEach; ++i) ns += 1000 * (1 + t + i % 1000);
  }
  EXPECT_EQ(sums.ns, ns);
}

}  // namespace
}  // namespace tilewire::service
