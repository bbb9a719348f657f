// SPDX-License-Identifier: Apache-2.0
#include "client/load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/client/fake_server.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

class LoadTest : public ::testing::Test {
 protected:
  // Two different inputs in turn, four callers.
  absl::StatusOr<LoadReport> Run(int64_t requests) {
    LoadOptions options;
    options.model = "echo";
    options.inputs = {{Tensor::FromFloats("x", {1}, {1.0f})},
                      {Tensor::FromFloats("x", {1}, {2.0f})}};
    options.infer.outputs = {{"scores"}};
    options.concurrency = 4;
    options.requests = requests;
    return RunLoad([&] { return server_.NewClient(); }, options, [](const LoadReport&) {});
  }

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
  EXPECT_EQ(report->errors, 25);
  EXPECT_EQ(report->answered, 25);
  EXPECT_THAT(report->first_error, HasSubstr("too much"));
}

TEST_F(LoadTest, GivesUpOnAServerThatRefusesEverything) {
  service_.edit = [](int, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no");
  };
  const auto report = Run(1'000'000);
  ASSERT_THAT(report, IsOk());
  EXPECT_LT(report->errors, 200);
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
    EXPECT_EQ(latencies.Percentile(c.percent), absl::Milliseconds(c.ms)) << c.why;
  }
  Latencies more;
  more.Add(absl::Seconds(1));
  more.Merge(latencies);
  EXPECT_EQ(more.count(), 101);
  EXPECT_EQ(more.Percentile(100), absl::Seconds(1));
}

}  // namespace
}  // namespace tilewire::client
