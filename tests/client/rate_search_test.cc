// SPDX-License-Identifier: Apache-2.0
#include "client/load/search/rate_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/load/search/find_rate.h"
#include "tests/client/fake_server.h"
#include "tests/client/simulated_load.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::HasSubstr;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

constexpr absl::Duration kBound = absl::Milliseconds(20);

// A server of known capacity, in simulated time: it takes 1 ms below its capacity and 1 s above.
class KnownCapacity {
 public:
  explicit KnownCapacity(double capacity) : capacity_(capacity) {}

  RateSearchWorld World() {
    return {.measure = [this](const RateRun& run) -> absl::StatusOr<LoadReport> {
              now_ += run.length();
              ++runs_;
              const bool holds = (run.rate <= capacity_) != (runs_ == odd_run_);
              LoadReport report;
              report.answered = run.requests;
              for (int64_t i = 0; i < run.requests; ++i)
                report.latencies.Add(holds ? absl::Milliseconds(1) : absl::Seconds(1));
              return report;
            },
            .now = [this] { return now_; },
            .progress = [](const RateProbe&) {}};
  }
  // The run that holds although the rate is too high, or fails although it is not.
  void SetOdd(int run) { odd_run_ = run; }
  absl::Duration passed() const { return now_ - absl::UnixEpoch(); }

 private:
  const double capacity_;
  int runs_ = 0, odd_run_ = 0;
  absl::Time now_ = absl::UnixEpoch();
};

RateSearchOptions OptionsFrom(double first_rate) {
  return {.p99 = kBound, .first_rate = first_rate};
}

TEST(SearchRate, FindsTheIntervalFromBelowAndAbove) {
  for (const double first : {1.0, 180.0, 190.0, 5000.0}) {
    KnownCapacity capacity(187);
    const auto result = SearchRate(OptionsFrom(first), capacity.World());
    ASSERT_THAT(result, IsOk());
    EXPECT_LE(result->holds, 187) << first;
    EXPECT_GT(result->fails, 187) << first;
    // Runs that all surprise in one direction widen it again.
    EXPECT_LE(result->fails, result->holds * 1.2) << first;
  }
}

TEST(SearchRate, OneFailureAtFirstDoesNotDecide) {
  KnownCapacity capacity(187);
  capacity.SetOdd(1);
  const auto result = SearchRate(OptionsFrom(90), capacity.World());
  ASSERT_THAT(result, IsOk());
  EXPECT_GT(result->holds, 90);
  EXPECT_LE(result->holds, 187);
  EXPECT_GT(result->fails, 187);
}

TEST(SearchRate, NoRateHolds) {
  KnownCapacity capacity(0);
  RateSearchOptions options = OptionsFrom(10);
  options.least_rate = 0.1;
  const auto result = SearchRate(options, capacity.World());
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->holds, 0);
  EXPECT_EQ(result->low, 0);
  EXPECT_LT(result->fails, 10);
}

TEST(SearchRate, EveryRateHolds) {
  KnownCapacity capacity(1e9);
  RateSearchOptions options = OptionsFrom(10);
  options.most_rate = 1000;
  const auto result = SearchRate(options, capacity.World());
  ASSERT_THAT(result, IsOk());
  EXPECT_GT(result->holds, 500);
  EXPECT_EQ(result->fails, 0);
  EXPECT_TRUE(result->probes.back().run.is_last);
}

TEST(SearchRate, EndsWhenItIsStoppedAndOnErrors) {
  KnownCapacity capacity(187);
  const std::atomic<bool> stop = true;
  RateSearchWorld world = capacity.World();
  world.stop = &stop;
  const auto result = SearchRate(OptionsFrom(10), world);
  ASSERT_THAT(result, IsOk());
  EXPECT_TRUE(result->probes.empty());
  world.stop = nullptr;
  world.measure = [](const RateRun&) { return absl::UnavailableError("gone"); };
  EXPECT_THAT(SearchRate(OptionsFrom(10), world), StatusIs(absl::StatusCode::kUnavailable));
}

// At 5 requests per second a run of two seconds would have a p99 of ten answers.
TEST(SearchRate, EachRunHasSomeHundredAnswers) {
  KnownCapacity capacity(5);
  const auto result = SearchRate(OptionsFrom(3), capacity.World());
  ASSERT_THAT(result, IsOk());
  for (const RateProbe& probe : result->probes) EXPECT_GE(probe.run.requests, 300);
  RateSearchOptions options = OptionsFrom(1000);
  EXPECT_EQ(ShortRunAt(options, 1000).requests, 2000) << "two seconds";
  options.run = absl::Seconds(10);
  EXPECT_EQ(ShortRunAt(options, 1000).requests, 10'000);
  options.requests = 100;
  EXPECT_EQ(ShortRunAt(options, 1000).requests, 100);
}

TEST(SearchRate, EndsWithALongRunAtItsResult) {
  KnownCapacity capacity(187);
  const auto result = SearchRate(OptionsFrom(90), capacity.World());
  ASSERT_THAT(result, IsOk());
  const RateProbe& last = result->probes.back();
  EXPECT_TRUE(last.run.is_last);
  EXPECT_TRUE(last.held);
  EXPECT_LE(result->holds, last.run.rate);
  EXPECT_GE(result->holds, 0.9 * last.run.rate);
  EXPECT_GE(last.run.requests, 4 * 300);
}

// At 201/s, a two-hundredth too much, a queue grows for 8 s before p99 leaves a bound of 60 ms.
TEST(SearchRate, AQueueThatGrowsSlowlyIsNoProofOfARate) {
  SimulatedLoad load(0.005, {.name = "none"}, /*constant=*/true, absl::Milliseconds(60), 1);
  const auto result = SearchRate({.p99 = absl::Milliseconds(60), .first_rate = 100}, load.World());
  ASSERT_THAT(result, IsOk());
  EXPECT_LE(result->holds, 200);
  EXPECT_GE(result->holds, 190);
  EXPECT_GE(result->fails, 200);
  EXPECT_LE(result->fails, 210);
}

// Overload of a tenth takes ten bounds to show.
TEST(SearchRate, RunsAreMuchLongerThanTheBound) {
  RateSearchOptions options{.p99 = absl::Seconds(1)};
  EXPECT_EQ(ShortRunAt(options, 100).requests, 2000) << "20 s";
  options.requests = 500;
  EXPECT_EQ(ShortRunAt(options, 100).requests, 500);
}

// With this seed the range is narrow before the first pause, and wide again after a long run.
TEST(SearchRate, ARangeThatIsNarrowByChanceDoesNotEndIt) {
  SimulatedLoad load(0.005, {.jitter = 0.2, .pause_every_s = 60, .pause_s = 0.2}, false,
                     absl::Milliseconds(60), 27);
  const RateSearchWorld world = load.World();
  const auto result = SearchRate({.p99 = absl::Milliseconds(60), .first_rate = 100}, world);
  ASSERT_THAT(result, IsOk());
  int confirmed = 0;
  for (const RateProbe& probe : result->probes) confirmed += probe.run.is_last && probe.held;
  EXPECT_GE(confirmed, 2);
  EXPECT_GT(world.now(), absl::UnixEpoch() + absl::Minutes(3));
}

// Short runs hold up to 187/s; a long one holds only up to 150/s.
TEST(SearchRate, GoesOnBelowALastRunThatFails) {
  KnownCapacity shortly(187), at_length(150);
  RateSearchWorld world = shortly.World(), long_world = at_length.World();
  const MeasureRate measure = world.measure;
  world.measure = [&](const RateRun& run) {
    return run.is_last ? long_world.measure(run) : measure(run);
  };
  RateSearchOptions options = OptionsFrom(90);
  options.time = absl::Minutes(4);
  const auto result = SearchRate(options, world);
  ASSERT_THAT(result, IsOk());
  EXPECT_LE(result->holds, 150);
  EXPECT_GT(result->holds, 75);
}

TEST(SearchRate, ItsTimeIsBounded) {
  struct Case {
    double first_rate;
    absl::Duration time;  // zero: by default
    absl::Duration most;
  };
  const Case kCases[] = {{1000, absl::ZeroDuration(), absl::Minutes(4)},
                         {10, absl::ZeroDuration(), 40 * 1.1 * absl::Seconds(30)},
                         {1000, absl::Seconds(40), absl::Seconds(40)}};
  for (const Case& c : kCases) {
    // Its runs contradict each other, so that no precision ends it.
    SimulatedLoad load(0.4 / c.first_rate, {.jitter = 0.2, .drift = 0.1, .drift_s = 10}, false,
                       absl::Seconds(5 / c.first_rate), 1);
    RateSearchOptions options = OptionsFrom(c.first_rate);
    options.p99 = absl::Seconds(5 / c.first_rate);
    options.time = c.time;
    EXPECT_LE(SearchTime(options), c.most);
    const RateSearchWorld world = load.World();
    ASSERT_THAT(SearchRate(options, world), IsOk());
    // Random gaps may make the last run a little longer than planned.
    EXPECT_LE(world.now() - absl::UnixEpoch(), 1.05 * SearchTime(options));
  }
}

TEST(SearchRate, TooLittleTimeIsRefused) {
  KnownCapacity capacity(187);
  RateSearchOptions options = OptionsFrom(2);
  options.time = absl::Seconds(60);
  EXPECT_THAT(
      SearchRate(options, capacity.World()),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("--search_time=60: at 2/s a run of 300 requests takes 165 s, and a "
                         "search 12 of them: at least 1980 s")));
}

// The limit is the rate at which one answer of a hundred is beyond the bound, in a long load.
TEST(SearchRate, NineOfTenIntervalsContainTheLimitOfANoisyServer) {
  constexpr struct {
    Noise noise;
    double limit;  // of rate_search_bench
  } kCases[] = {
      {{.name = "random arrivals"}, 162.1},
      {{.name = "long pauses", .jitter = 0.2, .pause_every_s = 60, .pause_s = 0.2}, 138.8},
      {{.name = "slow drift", .jitter = 0.2, .drift = 0.08, .drift_s = 30}, 144.5}};
  constexpr int kSearches = 10;
  for (const auto& c : kCases) {
    int inside = 0;
    for (int i = 0; i < kSearches; ++i) {
      SimulatedLoad load(0.005, c.noise, /*constant=*/false, absl::Milliseconds(60), i);
      const auto result =
          SearchRate({.p99 = absl::Milliseconds(60), .first_rate = 70}, load.World());
      ASSERT_THAT(result, IsOk());
      const bool is_inside =
          result->holds > 0 && result->holds <= c.limit && c.limit <= result->fails;
      inside += is_inside;
      EXPECT_LT(result->fails, 3 * result->low) << c.noise.name << ", search " << i;
    }
    EXPECT_GE(inside, 0.9 * kSearches) << c.noise.name;
  }
}

TEST(SearchRate, RunsHaveAsManyRequestsAsTheObjectiveNeeds) {
  RateSearchOptions options = OptionsFrom(10);
  options.objective = *Objective::Parse("p99.9<1s");
  EXPECT_EQ(ShortRunAt(options, 10).requests, 1000);
  options.requests = 999;
  EXPECT_THAT(CheckSearch(options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--requests=999: the percentiles of --require need 1000 answers"));
  options.requests = 1000;
  EXPECT_THAT(CheckSearch(options), StatusIs(absl::StatusCode::kOk));
}

TEST(EvidenceOf, WantsNoErrorsAndTheObjective) {
  RateSearchOptions options = OptionsFrom(10);
  const RateRun run{.rate = 100, .requests = 300};
  KnownCapacity capacity(187);
  LoadReport report = *capacity.World().measure(run);
  EXPECT_TRUE(EvidenceOf(options, run, report).holds());
  options.objective = *Objective::Parse("max<0.5ms");
  EXPECT_FALSE(EvidenceOf(options, run, report).holds());
  options.objective = {};
  report.errors[absl::StatusCode::kUnavailable] = 1;
  EXPECT_FALSE(EvidenceOf(options, run, report).holds());
  report.errors.clear();
  report.ended_because = "too many were slow";
  const RateEvidence evidence = EvidenceOf(options, run, report);
  EXPECT_TRUE(evidence.at_least);
  EXPECT_EQ(evidence.beyond, run.most_beyond() + 1);
}

// A server that takes 2 ms for each request, one after the other, answers 500/s.
TEST(FindRate, FindsAKnownCapacity) {
  absl::Mutex mutex;
  absl::Time free_at = absl::InfinitePast();
  FakeService service;
  service.edit = [&](int, const auto&, auto*) {
    absl::Time mine;
    {
      absl::MutexLock lock(&mutex);
      mine = free_at = std::max(free_at, absl::Now()) + absl::Milliseconds(2);
    }
    absl::SleepFor(mine - absl::Now());
    return grpc::Status::OK;
  };
  FakeServer server(&service);
  LoadOptions load;
  load.parts = {{.name = "echo", .model = "echo", .inputs = {{Tensor::FromFloats("x", {1}, {1})}}}};
  load.parts[0].infer.outputs = {{"scores"}};
  load.arrivals = ArrivalKind::kConstant;
  RateSearchOptions options{.p99 = absl::Milliseconds(150), .precision = 0.5};
  options.requests = 100;
  options.time = absl::Minutes(1);
  int told = 0, ran = 0;
  const RateSearchProgress progress = {
      .begins = [&](const RateSearchOptions& begun) { told += begun.first_rate > 0; },
      .runs = [](const RateRun&, double, const LoadReport&) {},
      .ran = [&](const RateProbe&) { ++ran; }};
  // In a last run of 410 requests, at 614/s, each waits 0.37 ms longer than the one before it:
  // 150 ms in all. A busy machine takes a part of the capacity, one that stalls all of it at times.
  absl::StatusOr<RateSearchResult> result;
  for (int attempt = 0; attempt < 3; ++attempt) {
    result = FindRate([&] { return server.NewClient(); }, load, options, progress);
    ASSERT_THAT(result, IsOk());
    EXPECT_LE(result->holds, 614);
    if (result->holds >= 100) break;
  }
  EXPECT_GE(result->holds, 100);
  EXPECT_GT(result->fails, result->holds);
  EXPECT_GE(told, 1);
  EXPECT_GE(ran, static_cast<int>(result->probes.size()));
}

}  // namespace
}  // namespace tilewire::client
