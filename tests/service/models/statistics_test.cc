// SPDX-License-Identifier: Apache-2.0
#include "service/models/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;

constexpr RunTimes kTimes = {.decode = absl::Nanoseconds(5),
                             .queue = absl::Nanoseconds(1),
                             .plan = absl::Nanoseconds(6),
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
        statistics.Failed(absl::StatusCode::kUnavailable, RequestRefusal::kQueue,
                          absl::Nanoseconds(100));
        statistics.HeldCores(absl::Nanoseconds(7));
        statistics.Wrote(absl::Nanoseconds(8));
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
  EXPECT_EQ(sums.decode.ns, 5 * kAll);
  EXPECT_EQ(sums.queue.ns, kAll);
  EXPECT_EQ(sums.plan.ns, 6 * kAll);
  EXPECT_EQ(sums.input.ns, 2 * kAll);
  EXPECT_EQ(sums.infer.ns, 3 * kAll);
  EXPECT_EQ(sums.output.ns, 4 * kAll);
  EXPECT_EQ(sums.write.ns, 8 * kAll);
  EXPECT_EQ(sums.core_ns, 7 * kAll);
  EXPECT_EQ(sums.runs, kAll);
  EXPECT_EQ(statistics.durations().request.Sum().count, kAll);
  EXPECT_EQ(statistics.durations().queue.Sum().ns, kAll);
  EXPECT_EQ(statistics.durations().compute.Sum().ns, 15 * kAll);
  int64_t rows = 0, runs = 0;
  for (const VersionStatistics::Batch& batch : sums.batches) {
    rows += batch.rows * batch.runs;
    EXPECT_EQ(batch.infer_ns, (6 + 3) * batch.runs) << "with the plan";
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

TEST(StatisticsTest, CountByCodeAndByRefusal) {
  VersionStatistics statistics;
  statistics.Succeeded(1, kTimes, {});
  statistics.Failed(absl::StatusCode::kUnavailable, RequestRefusal::kTooLate, {});
  statistics.Failed(absl::StatusCode::kUnavailable, RequestRefusal::kTooLate, {});
  statistics.Failed(absl::StatusCode::kInvalidArgument, RequestRefusal::kNone, {});
  statistics.Failed(static_cast<absl::StatusCode>(99), RequestRefusal::kNone, {});
  const VersionStatistics::Sums sums = statistics.Sum();
  const auto of_code = [&sums](absl::StatusCode code) { return sums.ends.Of(code); };
  EXPECT_EQ(of_code(absl::StatusCode::kOk), 1);
  EXPECT_EQ(of_code(absl::StatusCode::kUnavailable), 2);
  EXPECT_EQ(of_code(absl::StatusCode::kInvalidArgument), 1);
  EXPECT_EQ(of_code(absl::StatusCode::kUnknown), 1) << "codes that there are not";
  EXPECT_EQ(sums.ends.by_refusal[static_cast<size_t>(RequestRefusal::kTooLate)], 2);
  EXPECT_EQ(sums.ends.by_refusal[static_cast<size_t>(RequestRefusal::kQueue)], 0);
  EXPECT_EQ(sums.ends.Refused(), 2);
  EXPECT_EQ(sums.fail.count, 4);
}

TEST(StatisticsTest, CountLoadsOfAModelAlsoWhenItsVersionsAreGone) {
  Statistics all;
  const auto first = all.Of("cats", 1);
  all.Loaded("cats", 1, /*ok=*/true, absl::Seconds(2));
  all.Loaded("cats", 2, /*ok=*/false, absl::Seconds(9));
  all.Forget("cats", 1);
  all.Loaded("cats", 1, /*ok=*/true, absl::Seconds(3));
  EXPECT_EQ(all.loads()["cats"].ok, 2);
  EXPECT_EQ(all.loads()["cats"].failed, 1);
  EXPECT_EQ(first->load_time(), absl::Seconds(2));
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
