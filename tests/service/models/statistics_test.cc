// SPDX-License-Identifier: Apache-2.0
#include "service/models/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;

constexpr RunTimes kTimes = {.queue = absl::Nanoseconds(1),
                             .input = absl::Nanoseconds(2),
                             .infer = absl::Nanoseconds(3),
                             .output = absl::Nanoseconds(4)};

TEST(StatisticsTest, AddUpOverThreadsWithoutLosingAny) {
  constexpr int kThreads = 24, kEach = 2000;  // more threads than shards
  VersionStatistics statistics;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&statistics] {
      for (int i = 0; i < kEach; ++i) {
        statistics.Succeeded(1 + i % 3, kTimes, absl::Nanoseconds(10));
        statistics.Failed(absl::Nanoseconds(100));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const VersionStatistics::Sums sums = statistics.Sum();
  constexpr int64_t kAll = int64_t{kThreads} * kEach;
  EXPECT_EQ(sums.success.count, kAll);
  EXPECT_EQ(sums.success.ns, 10 * kAll);
  EXPECT_EQ(sums.fail.count, kAll);
  EXPECT_EQ(sums.fail.ns, 100 * kAll);
  EXPECT_EQ(sums.queue.ns, kAll);
  EXPECT_EQ(sums.input.ns, 2 * kAll);
  EXPECT_EQ(sums.infer.ns, 3 * kAll);
  EXPECT_EQ(sums.output.ns, 4 * kAll);
  EXPECT_EQ(sums.runs, kAll);
  int64_t rows = 0, runs = 0;
  for (const VersionStatistics::Batch& batch : sums.batches) {
    rows += batch.rows * batch.runs;
    runs += batch.runs;
  }
  EXPECT_EQ(sums.rows, rows);
  EXPECT_EQ(runs, kAll);
}

TEST(StatisticsTest, HaveARowForEachSizeOfABatchUpToABound) {
  VersionStatistics statistics;
  for (const int64_t rows : {7, 1, 0, 7}) statistics.Succeeded(rows, kTimes, {});
  std::vector<int64_t> sizes, runs;
  for (const VersionStatistics::Batch& batch : statistics.Sum().batches) {
    sizes.push_back(batch.rows);
    runs.push_back(batch.runs);
  }
  EXPECT_THAT(sizes, ElementsAre(0, 1, 7));
  EXPECT_THAT(runs, ElementsAre(1, 1, 2));
  constexpr int64_t kSizes = 1000;
  for (int64_t rows = 0; rows < kSizes; ++rows) statistics.Succeeded(rows, kTimes, {});
  const VersionStatistics::Sums sums = statistics.Sum();
  EXPECT_EQ(sums.batches.size(), VersionStatistics::kMostBatchSizes);
  EXPECT_EQ(sums.runs, 4 + kSizes) << "the totals know all sizes";
}

TEST(StatisticsTest, BelongToAVersion) {
  Statistics all;
  const auto first = all.Of("cats", 1);
  EXPECT_EQ(all.Of("cats", 1), first);
  EXPECT_NE(all.Of("cats", 2), first);
  EXPECT_NE(all.Of("dogs", 1), first);
  EXPECT_EQ(first->Sum().last_ms, 0);
}

}  // namespace
}  // namespace tilewire::service
