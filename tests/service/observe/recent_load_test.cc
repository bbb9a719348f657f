// SPDX-License-Identifier: Apache-2.0
#include "service/observe/recent_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace tilewire::service {
namespace {

constexpr int64_t kMillisecond = 1'000'000, kOneSecond = 1000 * kMillisecond;
constexpr int64_t kStart = 1'000'000 * kOneSecond;  // a multiple of ten seconds since 1970

// An inference that ended `end_ms` after kStart.
FlightRecord Ended(uint32_t model, int64_t end_ms, int64_t waited_ms, int64_t ran_ms) {
  FlightRecord record;
  record.arrival_ns = kStart + (end_ms - waited_ms - ran_ms) * kMillisecond;
  record.queue_ns = waited_ms * kMillisecond;
  record.run_ns = ran_ms * kMillisecond;
  record.core_ns = 3 * record.run_ns;
  record.model = model;
  record.batch = record.rows = 2;
  record.flags = FlightRecord::kIsInference;
  return record;
}

class RecentLoadTest : public ::testing::Test {
 protected:
  void Look(int64_t ms) { load_.Look(kStart + ms * kMillisecond); }

  FlightRecorder recorder_;
  RecentLoad load_{&recorder_};
};

TEST(DurationCountsTest, QuantilesAreRightToSixPercent) {
  EXPECT_EQ(DurationCounts().QuantileMs(0.5), 0);
  for (const double ms : {0.001, 0.05, 1.0, 12.3, 371.0, 60'000.0}) {
    DurationCounts counts;
    for (int i = 0; i < 99; ++i) counts.Add(static_cast<int64_t>(ms * 1e6));
    counts.Add(static_cast<int64_t>(100e9));
    EXPECT_NEAR(counts.QuantileMs(0.5), ms, 0.07 * ms);
    EXPECT_NEAR(counts.QuantileMs(0.99), ms, 0.07 * ms);
    EXPECT_NEAR(counts.QuantileMs(1), 100e3, 7e3);
  }
  DurationCounts beyond;
  for (const int64_t ns : {int64_t{-5}, int64_t{0}, INT64_MAX}) beyond.Add(ns);
  EXPECT_GT(beyond.QuantileMs(1), 100e3);
}

TEST_F(RecentLoadTest, APointIsASecondOfAllModels) {
  Look(0);
  recorder_.Add(Ended(1, 100, 5, 5), "");
  recorder_.Add(Ended(2, 900, 0, 10), "");
  FlightRecord failed = Ended(1, 1500, 0, 40);
  failed.code = 4;
  recorder_.Add(failed, "");
  FlightRecord primitive = Ended(0, 1600, 0, 40);
  primitive.flags = 0;
  recorder_.Add(primitive, "");
  Look(2000);
  EXPECT_TRUE(load_.Points().empty()) << "records of these seconds may still come";
  recorder_.Add(Ended(1, 200, 0, 10), "");
  Look(10'000);
  const std::vector<RecentLoad::Point> points = load_.Points();
  ASSERT_EQ(points.size(), 2);
  EXPECT_EQ(points[0].second, kStart / kOneSecond);
  EXPECT_EQ(points[0].requests, 3);
  EXPECT_EQ(points[0].failed, 0);
  EXPECT_NEAR(points[0].p99_ms, 10, 0.7);
  EXPECT_EQ(points[1].requests, 1);
  EXPECT_EQ(points[1].failed, 1);
  Look(700'000);
  EXPECT_TRUE(load_.Points().empty()) << "ten minutes later";
}

TEST_F(RecentLoadTest, OfEachModelThereIsTheLastMinute) {
  Look(0);
  for (int i = 1; i <= 20; ++i) recorder_.Add(Ended(7, 500 * i, 30, 10), "");
  recorder_.Add(Ended(8, 100, 0, 1), "");
  Look(10'000);
  const auto models = load_.Models(kStart + 10'000 * kMillisecond);
  ASSERT_EQ(models.size(), 2);
  const RecentLoad::OfModel& one = models[0];
  EXPECT_EQ(one.model, 7);
  EXPECT_EQ(one.requests, 20);
  EXPECT_NEAR(one.per_second, 2, 0.01);
  EXPECT_NEAR(one.p50_ms, 40, 3);
  EXPECT_NEAR(one.waiting_share, 0.75, 0.01);
  EXPECT_NEAR(one.rows_per_run, 2, 0.01);
  EXPECT_NEAR(one.running, 0.02, 0.001) << "20 runs of 10 ms in 10 s";
  EXPECT_NEAR(one.cores, 0.06, 0.003) << "each on three cores";
  Look(80'000);
  EXPECT_TRUE(load_.Models(kStart + 80'000 * kMillisecond).empty());
}

}  // namespace
}  // namespace tilewire::service
