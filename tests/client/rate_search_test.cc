// SPDX-License-Identifier: Apache-2.0
#include "client/load/rate_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "tests/client/fake_server.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

// What a server of a known capacity would show: 1 ms below it, 1 s above.
class KnownCapacity {
 public:
  explicit KnownCapacity(double capacity) : capacity_(capacity) {}

  absl::StatusOr<LoadReport> operator()(double rate) {
    ++runs_;
    LoadReport report;
    report.answered = 1;
    const bool is_odd_one_out = odd_every_ > 0 && runs_ % odd_every_ == 0;
    const bool holds = (rate <= capacity_) != is_odd_one_out;
    report.latencies.Add(holds ? absl::Milliseconds(1) : absl::Seconds(1));
    return report;
  }
  void SetOddEvery(int runs) { odd_every_ = runs; }

 private:
  const double capacity_;
  int runs_ = 0, odd_every_ = 0;
};

RateSearchOptions OptionsFrom(double first_rate) {
  RateSearchOptions options;
  options.p99 = absl::Milliseconds(20);
  options.first_rate = first_rate;
  return options;
}

TEST(SearchRate, FindsTheIntervalFromBelowAndAbove) {
  for (const double first : {1.0, 180.0, 190.0, 5000.0}) {
    const auto result = SearchRate(OptionsFrom(first), KnownCapacity(187), nullptr);
    ASSERT_THAT(result, IsOk());
    EXPECT_LE(result->holds, 187) << first;
    EXPECT_GT(result->fails, 187) << first;
    EXPECT_LE(result->fails, result->holds * 1.0301) << first;
    EXPECT_FALSE(result->probes.empty());
  }
}

TEST(SearchRate, TheMajorityOfRunsDecides) {
  KnownCapacity capacity(187);
  capacity.SetOddEvery(4);
  const auto result = SearchRate(OptionsFrom(150), capacity, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_LE(result->holds, 187);
  EXPECT_GT(result->fails, 187);
}

TEST(SearchRate, OneFailureAtFirstDoesNotDecide) {
  int runs = 0;
  KnownCapacity capacity(187);
  const auto measure = [&](double rate) { return capacity(++runs == 1 ? 1e6 : rate); };
  const auto result = SearchRate(OptionsFrom(90), measure, nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_GT(result->holds, 180);
  EXPECT_LE(result->holds, 187);
}

TEST(SearchRate, NoRateHolds) {
  const auto result = SearchRate(OptionsFrom(10), KnownCapacity(0), nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->holds, 0);
  EXPECT_LT(result->fails, 0.03);
}

TEST(SearchRate, EveryRateHolds) {
  const auto result = SearchRate(OptionsFrom(10), KnownCapacity(1e9), nullptr);
  ASSERT_THAT(result, IsOk());
  EXPECT_GT(result->holds, 1e5);
  EXPECT_EQ(result->fails, 0);
}

TEST(SearchRate, EndsWhenItIsStoppedAndOnErrors) {
  const std::atomic<bool> stop = true;
  const auto result = SearchRate(OptionsFrom(10), KnownCapacity(187), &stop);
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->probes.empty());
  EXPECT_THAT(SearchRate(
                  OptionsFrom(10), [](double) { return absl::UnavailableError("gone"); }, nullptr),
              StatusIs(absl::StatusCode::kUnavailable));
}

TEST(RateHolds, WantsNoErrorsAndTheObjective) {
  RateSearchOptions options = OptionsFrom(10);
  LoadReport report = *KnownCapacity(187)(100);
  EXPECT_TRUE(RateHolds(options, report));
  options.objective = *Objective::Parse("max<0.5ms");
  EXPECT_FALSE(RateHolds(options, report));
  options.objective = {};
  report.errors[absl::StatusCode::kUnavailable] = 1;
  EXPECT_FALSE(RateHolds(options, report));
}

// A server that takes 16 ms for each request, one after the other, answers 62.5/s.
TEST(FindRate, FindsAKnownCapacity) {
  absl::Mutex mutex;
  absl::Time free_at = absl::InfinitePast();
  FakeService service;
  service.edit = [&](int, const auto&, auto*) {
    absl::Time mine;
    {
      absl::MutexLock lock(&mutex);
      mine = free_at = std::max(free_at, absl::Now()) + absl::Milliseconds(16);
    }
    absl::SleepFor(mine - absl::Now());
    return grpc::Status::OK;
  };
  FakeServer server(&service);
  LoadOptions load;
  load.parts = {{.name = "echo", .model = "echo", .inputs = {{Tensor::FromFloats("x", {1}, {1})}}}};
  load.parts[0].infer.outputs = {{"scores"}};
  load.arrivals = ArrivalKind::kConstant;
  load.duration = absl::Seconds(1.5);
  RateSearchOptions options;
  options.p99 = absl::Milliseconds(65);
  // Beyond it by 5 % at most; a busy machine takes a part of it, and one that stalls all of it now
  // and then.
  absl::StatusOr<RateSearchResult> result;
  for (int attempt = 0; attempt < 3; ++attempt) {
    result = FindRate([&] { return server.NewClient(); }, load, options, [](const RateProbe&) {});
    ASSERT_THAT(result, IsOk());
    EXPECT_LE(result->holds, 65.6);
    EXPECT_GT(result->fails, result->holds);
    if (result->holds >= 31) break;
  }
  EXPECT_GE(result->holds, 31);
}

}  // namespace
}  // namespace tilewire::client
