// SPDX-License-Identifier: Apache-2.0
#include "client/load/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>

#include "absl/time/clock.h"
#include "client/load/arrivals.h"
#include "tests/client/fake_server.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

// Two inputs of this model, which hold `value` and the next number.
LoadPart EchoPart(const std::string& name, float value, double share = 1) {
  LoadPart part;
  part.name = name;
  part.share = share;
  part.model = "echo";
  part.inputs = {{Tensor::FromFloats("x", {1}, {value})},
                 {Tensor::FromFloats("x", {1}, {value + 1})}};
  part.infer.outputs = {{"scores"}};
  return part;
}

class LoadTest : public ::testing::Test {
 protected:
  // Two different inputs in turn, four callers.
  static LoadOptions FourCallers(int64_t requests) {
    LoadOptions options;
    options.parts = {EchoPart("echo", 1)};
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
      const absl::Duration left = absl::FromUnixMicros(paused_until_) - absl::Now();
      met_pause_ += left > absl::Milliseconds(1) ? 1 : 0;  // a clock may be slewed
      absl::SleepFor(left);
      return grpc::Status::OK;
    };
  }

  std::atomic<int64_t> paused_until_ = 0;
  std::atomic<int> met_pause_ = 0;  // how many requests
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
  EXPECT_EQ(report->ended_because, "its first 100 requests all failed");
}

TEST_F(LoadTest, AnOpenLoopShowsAPauseThatAClosedLoopHides) {
  LoadOptions closed = FourCallers(/*requests=*/400);
  closed.concurrency = 1;
  Pause(/*first=*/50, absl::Milliseconds(400));
  const auto callers = Run(closed);
  ASSERT_THAT(callers, IsOk());
  EXPECT_EQ(met_pause_, 1) << "the one caller sends nothing meanwhile";
  EXPECT_GE(callers->latencies.Percentile(100), absl::Milliseconds(390));

  LoadOptions open = FourCallers(/*requests=*/400);
  open.profile = RateProfile(400);
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

// Every request that finds no server fails at once: callers would send 100,000 per second.
TEST_F(LoadTest, CallersRetreatFromAServerThatIsGone) {
  service_.edit = [](int number, const auto&, auto*) {
    return number < 10 ? grpc::Status::OK : grpc::Status(grpc::StatusCode::UNAVAILABLE, "gone");
  };
  const absl::Time start = absl::Now();
  const auto report = Run(FourCallers(/*requests=*/10 + 4 * 6));
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->answered, 10);
  EXPECT_EQ(report->error_count(), 4 * 6);
  // One caller at least has failed six times: at 0, 10, 30, 70, 150 and 310 ms.
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(310));
}

TEST_F(LoadTest, CallersThinkBeforeTheirNextRequest) {
  LoadOptions options = FourCallers(/*requests=*/0);
  options.duration = absl::Milliseconds(500);
  options.think = absl::Milliseconds(50);
  for (const ThinkKind kind : {ThinkKind::kConstant, ThinkKind::kExponential}) {
    options.think_kind = kind;
    const absl::Time start = absl::Now();
    const auto report = Run(options);
    const absl::Duration of_callers = options.concurrency * (absl::Now() - start);
    ASSERT_THAT(report, IsOk());
    EXPECT_TRUE(report->ok()) << report->first_error;
    EXPECT_EQ(report->think, absl::Milliseconds(50));
    EXPECT_THAT(report->name, HasSubstr("think time 50.0 ms"));
    // Each caller has room for ten pauses; of 40 exponential ones the standard deviation is 6.
    EXPECT_LE(report->answered, kind == ThinkKind::kConstant ? 44 : 80);
    // A pause is not a part of the latency: both together fit the time. Each first one is shorter.
    if (kind == ThinkKind::kConstant && report->answered > options.concurrency) {
      const auto answered = static_cast<double>(report->answered);
      EXPECT_LE(
          answered * report->latencies.Mean() + (answered - options.concurrency) * options.think,
          of_callers);
    }
  }
}

TEST_F(LoadTest, ALoadDoesNotWaitForCallersThatThink) {
  LoadOptions options = FourCallers(/*requests=*/0);
  options.think = absl::Hours(10'000);
  options.duration = absl::Milliseconds(100);
  EXPECT_EQ(Run(options)->answered, 0);
  options = FourCallers(/*requests=*/1);
  options.think = absl::Hours(1);
  std::atomic<bool> stop = true;
  options.stop = &stop;
  EXPECT_TRUE(Run(options)->ended_early());
}

TEST(ThinkTime, KeepsItsMeanAndFollowsItsSeed) {
  constexpr absl::Duration kMean = absl::Milliseconds(20);
  ThinkTime constant(kMean, ThinkKind::kConstant, 1);
  EXPECT_EQ(constant.Next(), kMean);
  const absl::Duration first = constant.First();
  EXPECT_LT(first, kMean);
  EXPECT_NE(first, constant.First()) << "callers would keep step";
  // The mean of 10,000 has a standard deviation of 1 %.
  ThinkTime a(kMean, ThinkKind::kExponential, 1), b(kMean, ThinkKind::kExponential, 1);
  absl::Duration sum;
  for (int i = 0; i < 10'000; ++i) {
    const absl::Duration pause = a.Next();
    EXPECT_EQ(pause, b.Next());
    sum += pause;
  }
  EXPECT_NEAR(absl::FDivDuration(sum, 10'000 * kMean), 1, 0.05);
  EXPECT_EQ(ThinkTime(absl::ZeroDuration(), ThinkKind::kExponential, 1).Next(),
            absl::ZeroDuration());
}

TEST_F(LoadTest, OpenLoopsLeaveRequestsUnsentWhenTooManyAnswersAreOutstanding) {
  LoadOptions options = FourCallers(/*requests=*/0);
  options.profile = RateProfile(200);
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
  for (int kind = 0; kind < 2; ++kind) {
    const auto report = Run(options);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(report->ended_because, "it was told to stop");
    options.profile = RateProfile(10);
  }
}

TEST_F(LoadTest, WarmUpIsNotCounted) {
  LoadOptions options = FourCallers(/*requests=*/0);
  options.profile = RateProfile(100);
  options.arrivals = ArrivalKind::kConstant;
  options.warm_up = absl::Milliseconds(200);
  options.duration = absl::Milliseconds(300);
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_NEAR(report->answered, 30, 1);
}

TEST_F(LoadTest, EveryCorruptAnswerOfMillesIsCounted) {
  service_.edit = [](int number, const auto&, inference::ModelInferResponse* response) {
    if (number % 1000 == 999) (*response->mutable_raw_output_contents(0))[0] ^= 1;
    return grpc::Status::OK;
  };
  const auto report = Run(5000);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->answered, 5000);
  EXPECT_EQ(report->mismatches, 5);
}

TEST_F(LoadTest, AMixKeepsItsShares) {
  LoadOptions options = FourCallers(/*requests=*/4000);
  options.parts = {EchoPart("often", 1, 3), EchoPart("seldom", 5, 1)};
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->ok()) << report->first_error;
  ASSERT_EQ(report->parts.size(), 2);
  EXPECT_EQ(report->parts[0].name, "often");
  // The standard deviation of the count is 27.
  EXPECT_NEAR(report->parts[0].answered, 3000, 140);
  EXPECT_EQ(report->parts[0].answered + report->parts[1].answered, 4000);
  EXPECT_EQ(report->parts[1].latencies.count(), report->parts[1].answered);
}

TEST_F(LoadTest, AProfileIsFollowed) {
  LoadOptions options = FourCallers(/*requests=*/0);
  options.profile = *RateProfile::Parse("100:1s,400:1s");
  options.duration = options.profile.length();
  options.arrivals = ArrivalKind::kConstant;
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->changes);
  EXPECT_NEAR(report->answered, 500, 2);
  // No request is answered before it is due; a machine that stalls answers in a later window.
  ASSERT_GE(report->windows.size(), 2);
  EXPECT_LE(report->windows[0].answered, 102);
  EXPECT_LE(report->windows[0].answered + report->windows[1].answered, 502);
}

TEST_F(LoadTest, SeveralThreadsTakeAnswers) {
  LoadOptions options = FourCallers(/*requests=*/400);
  options.threads = 3;
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->ok()) << report->first_error;
  EXPECT_EQ(report->answered, 400);
}

TEST_F(LoadTest, RecordedAnswersAreExpectedLater) {
  GoldenAnswers recorded;
  LoadOptions options = FourCallers(/*requests=*/20);
  options.recorded = &recorded;
  ASSERT_THAT(Run(options), IsOk());
  ASSERT_EQ(recorded.size(), 2);
  const auto golden = ReadGolden(WriteGolden(recorded));
  ASSERT_THAT(golden, IsOk());
  options.recorded = nullptr;
  options.golden = &*golden;
  EXPECT_TRUE(Run(options)->ok());

  // A server that is always wrong by the same bits agrees with itself, not with the record.
  service_.edit = [](int, const auto&, inference::ModelInferResponse* response) {
    float value;
    std::memcpy(&value, response->raw_output_contents(0).data(), sizeof(value));
    value += 1e-4f;
    std::memcpy(response->mutable_raw_output_contents(0)->data(), &value, sizeof(value));
    return grpc::Status::OK;
  };
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->mismatches, 20);
  EXPECT_THAT(report->first_error, HasSubstr("recorded answer"));
  options.tolerance = 1e-3;
  EXPECT_TRUE(Run(options)->ok());
  options.tolerance = 1e-5;
  EXPECT_EQ(Run(options)->mismatches, 20);

  options.parts = {EchoPart("echo", 7)};
  EXPECT_THAT(Run(options), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(LoadTest, TheServersSplitIsSubtracted) {
  service_.edit = [](int, const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response) {
    if (!request.parameters().contains("timing")) return grpc::Status::OK;
    absl::SleepFor(absl::Milliseconds(5));
    auto& parameters = *response->mutable_parameters();
    parameters["queue_us"].set_int64_param(1000);
    parameters["compute_us"].set_int64_param(2000);
    parameters["reorder_us"].set_int64_param(500);
    parameters["encode_us"].set_int64_param(100);
    return grpc::Status::OK;
  };
  LoadOptions options = FourCallers(/*requests=*/20);
  EXPECT_EQ(Run(options)->server.compute.count(), 0);
  options.split = true;
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_TRUE(report->ok()) << report->first_error;
  EXPECT_EQ(report->server.queue.Mean(), absl::Milliseconds(1));
  EXPECT_EQ(report->server.compute.Mean(), absl::Microseconds(1500)) << "without the reorders";
  EXPECT_EQ(report->server.reorder.Mean(), absl::Microseconds(500));
  EXPECT_EQ(report->server.encode.Mean(), absl::Microseconds(100));
  EXPECT_GE(report->server.network.Percentile(0), absl::Microseconds(1900));
  EXPECT_EQ(report->server.network.count(), 20);
}

TEST_F(LoadTest, EndsEarlyWhenTooManyRequestsAreSlow) {
  Pause(/*first=*/10, absl::Seconds(2));
  LoadOptions options = FourCallers(/*requests=*/0);
  options.profile = RateProfile(100);
  options.duration = absl::Hours(1);
  options.latency_bound = absl::Milliseconds(50);
  options.most_over_bound = 5;
  const auto report = Run(options);
  ASSERT_THAT(report, IsOk());
  EXPECT_EQ(report->ended_because, "more than 5 requests took longer than 50.0 ms");
}

TEST(Arrivals, KeepTheirRateAndFollowTheirSeed) {
  Arrivals constant(RateProfile(100), ArrivalKind::kConstant, 1);
  EXPECT_EQ(constant.Next(), absl::Milliseconds(10));
  for (int i = 0; i < 98; ++i) constant.Next();
  EXPECT_NEAR(absl::ToDoubleSeconds(constant.Next()), 1, 1e-9);

  // The time of the 10,000th arrival has a standard deviation of 1 % of its mean.
  Arrivals a(RateProfile(100), ArrivalKind::kPoisson, 1);
  Arrivals b(RateProfile(100), ArrivalKind::kPoisson, 1);
  absl::Duration last;
  for (int i = 0; i < 10'000; ++i) {
    last = a.Next();
    EXPECT_EQ(last, b.Next());
  }
  EXPECT_NEAR(absl::ToDoubleSeconds(last), 100, 5);
  EXPECT_NE(Arrivals(RateProfile(100), ArrivalKind::kPoisson, 2).Next(),
            Arrivals(RateProfile(100), ArrivalKind::kPoisson, 1).Next());
}

}  // namespace
}  // namespace tilewire::client
