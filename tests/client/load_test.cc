// SPDX-License-Identifier: Apache-2.0
#include "client/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "absl/time/clock.h"
#include "client/load/arrivals.h"
#include "client/load/random_input.h"
#include "tests/client/fake_server.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

class LoadTest : public ::testing::Test {
 protected:
  // Two different inputs in turn, four callers.
  static LoadOptions FourCallers(int64_t requests) {
    LoadOptions options;
    options.model = "echo";
    options.inputs = {{Tensor::FromFloats("x", {1}, {1.0f})},
                      {Tensor::FromFloats("x", {1}, {2.0f})}};
    options.infer.outputs = {{"scores"}};
    options.concurrency = 4;
    options.requests = requests;
    return options;
  }

  absl::StatusOr<LoadReport> Run(const LoadOptions& options) {
    return RunLoad([&] { return server_.NewClient(); }, options, [](const LoadReport&) {});
  }
  absl::StatusOr<LoadReport> Run(int64_t requests) { return Run(FourCallers(requests)); }

  // The service answers nothing for `pause` once request number `first` has come.
  void Pause(int first, absl::Duration pause) {
    service_.edit = [this, first, pause](int number, const auto&, auto*) {
      if (number == first) paused_until_ = absl::ToUnixMicros(absl::Now() + pause);
      absl::SleepFor(absl::FromUnixMicros(paused_until_) - absl::Now());
      return grpc::Status::OK;
    };
  }

  std::atomic<int64_t> paused_until_ = 0;
  FakeService service_;
  FakeServer server_{&service_};
};

TEST_F(LoadTest, CountsEveryAnswerOnce) {
  const auto report = Run(200);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->ok()) << report->first_error;
  EXPECT_EQ(report->answered, 200);
  EXPECT_EQ(report->latencies.count(), 200);
}

TEST_F(LoadTest, OneWrongBitInOneAnswerIsFound) {
  service_.edit = [](int number, const auto&, inference::ModelInferResponse* response) {
    if (number == 117) (*response->mutable_raw_output_contents(0))[0] ^= 1;
    return grpc::Status::OK;
  };
  const auto report = Run(200);
  ASSERT_THAT(report, IsOk());
  EXPECT_FALSE(report->ok());
  EXPECT_EQ(report->mismatches, 1);
  EXPECT_THAT(report->first_error, HasSubstr("'scores'"));
}

TEST_F(LoadTest, WrongBitInOneOfTheFirstAnswersIsFound) {
  service_.edit = [](int number, const auto&, inference::ModelInferResponse* response) {
    if (number == 0) (*response->mutable_raw_output_contents(0))[0] ^= 1;
    return grpc::Status::OK;
  };
  const auto report = Run(200);
  ASSERT_THAT(report, IsOk());
  EXPECT_GE(report->mismatches, 1);
}

TEST_F(LoadTest, ErrorsAreCountedAndQuoted) {
  service_.edit = [](int number, const auto&, auto*) {
    return number % 2 ? grpc::Status::OK
                      : grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too much");
  };
  const auto report = Run(50);
  ASSERT_THAT(report, IsOk());
  EXPECT_FALSE(report->ok());
  EXPECT_THAT(report->errors, ElementsAre(Pair(absl::StatusCode::kResourceExhausted, 25)));
  EXPECT_EQ(report->answered, 25);
  EXPECT_THAT(report->first_error, HasSubstr("too much"));
}

TEST_F(LoadTest, GivesUpOnAServerThatRefusesEverything) {
  service_.edit = [](int, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no");
  };
  const auto report = Run(1'000'000);
  ASSERT_THAT(report, IsOk());
  EXPECT_LT(report->error_count(), 200);
}

TEST_F(LoadTest, AnOpenLoopShowsAPauseThatAClosedLoopHides) {
  LoadOptions closed = FourCallers(/*requests=*/400);
  closed.concurrency = 1;
  Pause(/*first=*/50, absl::Milliseconds(400));
  const auto callers = Run(closed);
  ASSERT_THAT(callers, IsOk());
  // One request of 400 met the pause.
  EXPECT_LT(callers->latencies.Percentile(95), absl::Milliseconds(100));
  EXPECT_GE(callers->latencies.Percentile(100), absl::Milliseconds(390));

  LoadOptions open = FourCallers(/*requests=*/400);
  open.rate = 400;
  open.arrivals = ArrivalKind::kConstant;
  Pause(/*first=*/450, absl::Milliseconds(400));
  const auto users = Run(open);
  ASSERT_THAT(users, IsOk());
  EXPECT_TRUE(users->ok()) << users->first_error;
  // 160 of 400 requests were due within the pause; half of them waited for more than half of it.
  EXPECT_GE(users->latencies.Percentile(90), absl::Milliseconds(150));
  EXPECT_EQ(users->answered, 400);
}

TEST_F(LoadTest, CallersWaitAsLongAsTheyArePushedBack) {
  service_.refusal_pushback_ms = "200";
  service_.edit = [](int number, const auto&, auto*) {
    return number == 0 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "full") : grpc::Status::OK;
  };
  LoadOptions options = FourCallers(/*requests=*/2);
  options.concurrency = 1;
  const absl::Time start = absl::Now();
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->answered, 1);
  EXPECT_EQ(report->error_count(), 1);
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(200));
}

TEST_F(LoadTest, OpenLoopsLeaveRequestsUnsentWhenTooManyAnswersAreOutstanding) {
  LoadOptions options = FourCallers(/*requests=*/0);
  options.rate = 200;
  options.duration = absl::Milliseconds(500);
  options.max_waiting = 5;
  Pause(/*first=*/10, absl::Milliseconds(300));
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_GT(report->unsent, 0);
  EXPECT_FALSE(report->ok());
}

TEST_F(LoadTest, EndsEarlyWhenItIsStopped) {
  std::atomic<bool> stop = true;
  LoadOptions options = FourCallers(/*requests=*/0);
  options.duration = absl::Hours(1);
  options.stop = &stop;
  EXPECT_THAT(Run(options), IsOk());
  options.rate = 10;
  EXPECT_THAT(Run(options), IsOk());
}

TEST_F(LoadTest, WarmUpIsNotCounted) {
  LoadOptions options = FourCallers(/*requests=*/0);
  options.rate = 100;
  options.arrivals = ArrivalKind::kConstant;
  options.warm_up = absl::Milliseconds(200);
  options.duration = absl::Milliseconds(300);
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_NEAR(report->answered, 30, 1);
}

TEST(Arrivals, KeepTheirRateAndFollowTheirSeed) {
  Arrivals constant(100, ArrivalKind::kConstant, 1);
  EXPECT_EQ(constant.Next(), absl::Milliseconds(10));
  for (int i = 0; i < 98; ++i) constant.Next();
  EXPECT_NEAR(absl::ToDoubleSeconds(constant.Next()), 1, 1e-9);

  // The time of the 10,000th arrival has a standard deviation of 1 % of its mean.
  Arrivals a(100, ArrivalKind::kPoisson, 1), b(100, ArrivalKind::kPoisson, 1);
  absl::Duration last;
  for (int i = 0; i < 10'000; ++i) {
    last = a.Next();
    EXPECT_EQ(last, b.Next());
  }
  EXPECT_NEAR(absl::ToDoubleSeconds(last), 100, 5);
  EXPECT_NE(Arrivals(100, ArrivalKind::kPoisson, 2).Next(),
            Arrivals(100, ArrivalKind::kPoisson, 1).Next());
}

TEST(RandomInput, FillsOpenDimensionsAndFollowsTheLayout) {
  const TensorMetadata metadata{"x", "FP32", {-1, 3, 4, 5}};
  const auto a = RandomInput(metadata, 2, 7, Layout::kNhwc, 1);
  ASSERT_THAT(a, IsOk());
  EXPECT_THAT(a->shape, ElementsAre(2, 4, 5, 3));
  EXPECT_EQ(a->bytes.size(), 2 * 3 * 4 * 5 * 4);
  EXPECT_EQ(a->bytes, RandomInput(metadata, 2, 7, Layout::kNhwc, 1)->bytes);
  EXPECT_NE(a->bytes, RandomInput(metadata, 2, 7, Layout::kNhwc, 2)->bytes);
  const auto open = RandomInput({"x", "INT64", {-1, 3, -1}}, 2, 7, Layout::kNchw, 1);
  EXPECT_THAT(open->shape, ElementsAre(2, 3, 7));
  EXPECT_THAT(RandomInput({"x", "BYTES", {1}}, 1, 1, Layout::kNchw, 0),
              StatusIs(absl::StatusCode::kUnimplemented));
}

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

}  // namespace
}  // namespace tilewire::client
