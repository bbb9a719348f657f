// SPDX-License-Identifier: Apache-2.0
//
// A loaded model: what it refuses, how its runs end early, and what it explains.
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "engine/longest_steps.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/lowering/subject.h"

namespace tilewire::testing {
namespace {

class ModelTest : public ::testing::Test {
 protected:
  const Subject subject_{network::FindNetwork("Residual"), Options(cpu::BestIsa(), 1)};
  const Tensor image_ = Tensor(3 * 9 * 7, 0.5f);

  absl::Status RunOn(std::vector<InputTensor> inputs, std::vector<OutputRequest> outputs = {},
                     RunOptions options = {}) {
    return subject_.model->Run(inputs, outputs, options).status();
  }
};

TEST_F(ModelTest, WrongRequestsAreInvalidArguments) {
  const absl::string_view bytes = BytesOf(image_);
  EXPECT_TRUE(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {bytes}}}).ok());
  const std::vector<std::vector<InputTensor>> wrong = {
      {},
      {{{1, 3, 9, 7}, Layout::kNchw, {bytes}}, {{1, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{1, 3, 7, 9}, Layout::kNchw, {bytes}}},
      {{{3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{0, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{-1, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{int64_t{1} << 62, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{2, 3, 9, 7}, Layout::kNchw, {bytes}}},
      {{{1, 3, 9, 7}, Layout::kNchw, {bytes.substr(1)}}},
      {{{1, 3, 9, 7}, Layout::kNchw, {bytes, "x"}}},
  };
  for (size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_EQ(RunOn(wrong[i]).code(), absl::StatusCode::kInvalidArgument) << i;
  }
  for (int index : {-1, 1}) {
    EXPECT_EQ(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {bytes}}}, {{index}}).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(ModelTest, InterruptionEndsTheRunBetweenSteps) {
  int asked = 0;
  const RunOptions options{.interrupted = [&] {
    return ++asked < 3 ? absl::OkStatus() : absl::CancelledError("the client left");
  }};
  EXPECT_EQ(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}}, {}, options),
            absl::CancelledError("the client left"));
  EXPECT_EQ(asked, 3);
}

// Steps that were cut short computed nothing: the question after the last one must be asked.
TEST_F(ModelTest, ARunSaysHowLongItsReordersTook) {
  absl::Duration reorder_time = absl::Seconds(1);
  const absl::Time started = absl::Now();
  ASSERT_TRUE(
      RunOn({{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}}, {}, {.reorder_time = &reorder_time})
          .ok());
  EXPECT_GT(reorder_time, absl::Seconds(1)) << "it is added to what was there";
  EXPECT_LE(reorder_time, absl::Seconds(1.1) + (absl::Now() - started));
}

TEST_F(ModelTest, AfterTheLastStepTheRunAsksOnceMore) {
  int all = 0, asked = 0;
  const std::vector<InputTensor> inputs = {{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}};
  EXPECT_TRUE(RunOn(inputs, {},
                    {.interrupted =
                         [&] {
                           ++all;
                           return absl::OkStatus();
                         }})
                  .ok());
  const std::atomic<bool> stop = true;
  const RunOptions options{
      .interrupted =
          [&] { return ++asked < all ? absl::OkStatus() : absl::CancelledError("left"); },
      .stop = &stop};
  EXPECT_EQ(RunOn(inputs, {}, options), absl::CancelledError("left"));
  EXPECT_EQ(asked, all);
}

TEST_F(ModelTest, AnAnswerBeyondTheLimitIsRefusedBeforeAnyWork) {
  int asked = 0;
  const RunOptions options{.interrupted =
                               [&] {
                                 ++asked;
                                 return absl::OkStatus();
                               },
                           .max_output_bytes = 8};
  EXPECT_EQ(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}}, {}, options).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(asked, 0);
}

TEST_F(ModelTest, ExplainNamesEveryStepWithItsBytesAndFusedOps) {
  const auto plan = subject_.model->Explain({.batch = 2});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::map<std::string, PlanStep> steps;
  for (const PlanStep& step : plan->steps) steps[step.node] = step;
  for (const char* node : {"input x", "stem", "one", "two", "three", "output three.out"})
    EXPECT_TRUE(steps.count(node)) << node;
  const PlanStep& two = steps["two"];
  EXPECT_EQ(two.primitive, "convolution");
  EXPECT_EQ(two.fused, "relu:0");
  EXPECT_EQ(two.operations, 2 * 2 * 20 * 20 * 9 * 7) << "1x1, 20 channels to 20, 2 images of 9x7";
  ASSERT_EQ(two.tensors.size(), 4) << "source, weights, bias, destination";
  EXPECT_THAT(two.tensors[0].layout, ::testing::StartsWith("f32:2x20x9x7:"));
  EXPECT_GE(two.tensors[0].bytes, 2 * 20 * 9 * 7 * 4);
  EXPECT_GT(plan->activations_bytes, 0);
  EXPECT_EQ(plan->run, absl::ZeroDuration());
}

TEST_F(ModelTest, ExplainTimesEveryStepWhereRunsAreAskedFor) {
  const auto plan = subject_.model->Explain({.dims = {{3, 3, 9, 7}}, .runs = 3});
  ASSERT_TRUE(plan.ok()) << plan.status();
  absl::Duration sum;
  for (const PlanStep& step : plan->steps) {
    sum += step.time;
    if (step.primitive.empty()) continue;
    EXPECT_GT(step.time, absl::ZeroDuration()) << step.node;
  }
  EXPECT_GT(plan->run, absl::ZeroDuration());
  EXPECT_LE(sum, 3 * plan->run) << "each median is at most the time of some run";
  EXPECT_EQ(plan->threads, 1);
}

TEST_F(ModelTest, TheLiveProfileSumsTheTimesOfAllRunsForEachShape) {
  for (int64_t batch : {1, 2, 2}) {
    const Tensor images(batch * 3 * 9 * 7, 0.5f);
    ASSERT_TRUE(RunOn({{{batch, 3, 9, 7}, Layout::kNchw, {BytesOf(images)}}}).ok());
  }
  EXPECT_FALSE(RunOn({{{2, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}}).ok());
  EXPECT_TRUE(subject_.model->Explain({.batch = 2, .runs = 2}).ok());
  const std::vector<LivePlan> live = subject_.model->LiveProfile();
  ASSERT_EQ(live.size(), 2);
  EXPECT_EQ(live[0].dims, std::vector<Dims>({{2, 3, 9, 7}})) << "the last used comes first";
  EXPECT_EQ(live[0].runs, 2) << "neither refused requests nor runs of Explain() are among them";
  EXPECT_EQ(live[1].dims, std::vector<Dims>({{1, 3, 9, 7}}));
  EXPECT_EQ(live[1].runs, 1);
  for (const LivePlan& plan : live) {
    EXPECT_FALSE(plan.is_later_stage);
    EXPECT_EQ(plan.steps.front().node, "input x");
    EXPECT_EQ(plan.steps.back().node, "output three.out");
    for (const PlanStep& step : plan.steps) {
      if (step.primitive.empty()) continue;
      EXPECT_GT(step.time, absl::ZeroDuration()) << step.node;
    }
  }
}

TEST_F(ModelTest, TheLiveProfileLeavesOutRunsThatAreNotCounted) {
  const std::vector<InputTensor> inputs = {{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}};
  for (int run = 0; run < 3; ++run) ASSERT_TRUE(RunOn(inputs, {}, {.is_counted = false}).ok());
  ASSERT_TRUE(RunOn(inputs).ok());
  const std::vector<LivePlan> live = subject_.model->LiveProfile();
  ASSERT_EQ(live.size(), 1);
  EXPECT_EQ(live[0].runs, 1);
}

TEST_F(ModelTest, ARunKeepsItsLongestStepsWhereItIsAskedTo) {
  const std::vector<InputTensor> inputs = {{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}};
  ASSERT_TRUE(RunOn(inputs).ok());
  LongestSteps longest;
  const auto begin = LongestSteps::Clock::now();
  ASSERT_TRUE(RunOn(inputs, {}, {.longest_steps = &longest}).ok());
  const auto end = LongestSteps::Clock::now();
  std::set<std::string> nodes;
  const std::vector<LivePlan> live = subject_.model->LiveProfile();
  for (const PlanStep& step : live[0].steps) nodes.insert(step.node);
  ASSERT_GT(longest.steps().size(), 1u);
  ASSERT_LE(longest.steps().size(), LongestSteps::kMost);
  for (const LongestSteps::Step& step : longest.steps()) {
    EXPECT_TRUE(nodes.contains(std::string(step.name()))) << step.name();
    EXPECT_GE(step.start, begin) << step.name();
    EXPECT_LE(step.start + step.time, end) << step.name();
  }
  EXPECT_EQ(live[0].runs, 2) << "such runs are counted as all are";
}

TEST_F(ModelTest, TheLiveProfileLosesNothingOfRunsSideBySide) {
  constexpr int kThreads = 8, kRuns = 50;
  {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([this] {
        for (int run = 0; run < kRuns; ++run) {
          EXPECT_TRUE(RunOn({{{1, 3, 9, 7}, Layout::kNchw, {BytesOf(image_)}}}).ok());
          EXPECT_LE(subject_.model->LiveProfile().front().runs, kThreads * kRuns);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(subject_.model->LiveProfile().front().runs, kThreads * kRuns);
}

TEST_F(ModelTest, ExplainRefusesWhatARunWould) {
  const auto code = [this](const ExplainOptions& options) {
    return subject_.model->Explain(options).status().code();
  };
  EXPECT_EQ(code({.batch = 0}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.dims = {{1, 3, 7, 9}}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.dims = {{1, 3, 9, 7}, {1}}}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({.batch = 1, .limits = {.max_output_bytes = 755}}),
            absl::StatusCode::kResourceExhausted)
      << "the input has 756";
  EXPECT_EQ(code({.runs = 1, .limits = {.max_output_bytes = 800}}),
            absl::StatusCode::kResourceExhausted)
      << "the output has 5040";
  EXPECT_EQ(code({.batch = int64_t{1} << 61}), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(
      code({.runs = 1, .limits = {.interrupted = [] { return absl::CancelledError("left"); }}}),
      absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace tilewire::testing
