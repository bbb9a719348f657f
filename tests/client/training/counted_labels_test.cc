// SPDX-License-Identifier: Apache-2.0
//
// Labels that are ignored, and classes with weights: how batches count in the mean of their losses,
// what is judged, and what is refused because nothing counts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "client/training/model_fit.h"
#include "client/training/training_run.h"
#include "tests/client/training/fake_trainer.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

constexpr auto kRefusedLabels = absl::StatusCode::kInvalidArgument;

// A number for each label.
Dataset Labelled(const std::vector<int64_t>& labels) {
  std::vector<float> inputs;
  for (size_t i = 0; i < labels.size(); ++i) inputs.push_back(static_cast<float>(i));
  return Dataset({.bytes = BytesOf(inputs), .size = sizeof(float)}, {},
                 {{.bytes = BytesOf(labels), .size = sizeof(int64_t)}});
}

// All examples, in batches of two. FakeTrainer's loss of a batch is 2, that of one example is 1,
// and it takes the examples for the classes 0, 1, 2, 0, ...
absl::StatusOr<HeldOut> Judged(const std::vector<int64_t>& labels, const JudgedOutput& judged) {
  std::vector<int64_t> all;
  for (size_t i = 0; i < labels.size(); ++i) all.push_back(static_cast<int64_t>(i));
  RunOptions options;
  options.interrupted = [] { return absl::OkStatus(); };
  return EvaluateHeldOut(FakeTrainer(), Labelled(labels), all, 2, judged, options);
}

TEST(EvaluateHeldOut, WhatIsIgnoredIsNeitherJudgedNorWeighted) {
  ASSERT_OK_AND_ASSIGN(const HeldOut held_out, Judged({0, 255, 1, 0, 1}, {.ignore_index = 255}));
  EXPECT_EQ(held_out.judged, 4);
  EXPECT_EQ(held_out.right, 3) << "examples 0, 3 and 4";
  EXPECT_DOUBLE_EQ(held_out.loss, (1 * 2 + 2 * 2 + 1 * 1) / 4.0);
}

TEST(EvaluateHeldOut, ABatchInWhichNothingCountsHasNoLossToAdd) {
  ASSERT_OK_AND_ASSIGN(const HeldOut held_out, Judged({9, 9, 2}, {.ignore_index = 9}));
  EXPECT_EQ(held_out.judged, 1);
  EXPECT_DOUBLE_EQ(held_out.loss, 1);
}

TEST(EvaluateHeldOut, BatchesCountByTheWeightsOfTheirClasses) {
  ASSERT_OK_AND_ASSIGN(const HeldOut held_out, Judged({0, 1, 2}, {.class_weights = {1, 3, 0.5f}}));
  EXPECT_EQ(held_out.judged, 3);
  EXPECT_DOUBLE_EQ(held_out.loss, (4 * 2 + 0.5 * 1) / 4.5);
}

// The losses of `--loss=mse --add_loss=logits:cross_entropy --ignore_index=9`.
TEST(EvaluateHeldOut, ABatchInWhichNothingCountsAddsNothingToTheMeanOfThatLossAlone) {
  const std::vector<int64_t> labels = {9, 9, 2, 9, 0};
  const ExampleTensors values{.bytes = BytesOf(labels), .size = sizeof(int64_t)};
  const Dataset dataset({.bytes = BytesOf<float>({0, 1, 2, 3, 4}), .size = sizeof(float)}, {},
                        {values, values});
  FakeTrainer trainer;
  trainer.losses_of = [](absl::Span<const InputTensor> targets) -> std::vector<double> {
    std::vector<int64_t> counted = ElementsOf<int64_t>(targets.at(1));
    counted.erase(std::remove(counted.begin(), counted.end(), 9), counted.end());
    return {static_cast<double>(targets[0].dims[0]), counted.empty() ? NAN : 10.0 + counted[0]};
  };
  const JudgedOutput judged = {.loss = LossSpec::Kind::kMeanSquaredError,
                               .others = {{.ignore_index = 9}}};
  RunOptions options;
  options.interrupted = [] { return absl::OkStatus(); };
  ASSERT_OK_AND_ASSIGN(const HeldOut held_out,
                       EvaluateHeldOut(trainer, dataset, {0, 1, 2, 3, 4}, 2, judged, options));
  EXPECT_DOUBLE_EQ(held_out.loss, (2 * 2 + 2 * 2 + 1 * 1) / 5.0 + (12 + 10) / 2.0);
  EXPECT_EQ(held_out.judged, 0);
}

TEST(RunTraining, TheLossOfAnEpochIsOfTheLabelsThatCount) {
  FakeTrainer trainer;  // the loss of update u is 1 / u
  const std::vector<int64_t> labels = {0, 7, 7, 1, 0};
  const ExampleOrder order = *ExampleOrder::Create(5, 0, 3);
  RunSettings settings{.epochs = 1, .batch = 2};
  settings.judged.ignore_index = 7;
  const TrainingRecord record =
      RunTraining(&trainer, Labelled(labels), order, settings, TrainingEvents());
  ASSERT_THAT(record.failure, IsOk());
  double sum = 0;
  for (size_t u = 0; u < trainer.updates.size(); ++u) {
    for (const int64_t label : trainer.updates[u].targets)
      sum += label == 7 ? 0 : 1 / static_cast<double>(u + 1);
  }
  EXPECT_DOUBLE_EQ(record.epochs[0].loss, sum / 3);
}

TEST(PrepareTraining, LabelsNoneOfWhichCountAreRefused) {
  const ExampleOrder order = *ExampleOrder::Create(4, 0.25, 3);
  const int64_t held_out = order.held_out()[0];
  const auto prepared = [&](int64_t of_held_out, int64_t of_others) {
    std::vector<int64_t> labels(4, of_others);
    labels[held_out] = of_held_out;
    FakeTrainer trainer;
    RunSettings settings{.sources = {"--images=x", "--labels=y"}};
    settings.judged = {.ignore_index = 2, .class_weights = {0, 1, 1}};
    return PrepareTraining(&trainer, Labelled(labels), order, settings);
  };
  EXPECT_THAT(prepared(1, 1), IsOk());
  EXPECT_THAT(
      prepared(1, 2),
      StatusIs(kRefusedLabels, "--labels=y: no label of the 3 examples that are trained on"));
  EXPECT_THAT(prepared(1, 0), StatusIs(kRefusedLabels, "or of classes whose weight is 0"));
  EXPECT_THAT(prepared(2, 1),
              StatusIs(kRefusedLabels, "no label of the 1 example that is held out counts"));
}

TEST(PrepareTraining, LabelsNoneOfWhichCountInAnAddedLossAreRefused) {
  const std::vector<int64_t> labels = {2, 2, 2, 2};
  const ExampleTensors values{.bytes = BytesOf(labels), .size = sizeof(int64_t)};
  const Dataset dataset({.bytes = BytesOf<float>({0, 1, 2, 3}), .size = sizeof(float)}, {},
                        {values, values});
  FakeTrainer trainer;
  RunSettings settings{.sources = {"--images=x", "--labels=y"}};
  settings.judged = {.loss = LossSpec::Kind::kMeanSquaredError, .others = {{.ignore_index = 1}}};
  EXPECT_THAT(PrepareTraining(&trainer, dataset, *ExampleOrder::Create(4, 0, 3), settings), IsOk());
  settings.judged.others[0].ignore_index = 2;
  EXPECT_THAT(PrepareTraining(&trainer, dataset, *ExampleOrder::Create(4, 0, 3), settings),
              StatusIs(kRefusedLabels, "no label of the 4 examples that are trained on counts"));
}

TEST(FitTargets, TakesTheLabelThatIsIgnored) {
  const TensorSpec classes = {.name = "t", .type = DataType::kS64, .dims = {-1}};
  const TensorSpec logits = {.name = "logits", .dims = {-1, 10}};
  const LabelArray labels{"--labels=a.s32", {"INT32", {3}, BytesOf<int32_t>({3, -100, 9})}};
  LossSpec loss;
  EXPECT_THAT(
      FitTargets(loss, classes, logits, labels, 3),
      StatusIs(kRefusedLabels, "-100 of example 1 is not one of the 10 classes 0 to 9 (output"));
  loss.ignore_index = 255;
  EXPECT_THAT(FitTargets(loss, classes, logits, labels, 3),
              StatusIs(kRefusedLabels, "classes 0 to 9, nor --ignore_index=255 (output"));
  loss.ignore_index = -100;
  EXPECT_THAT(FitTargets(loss, classes, logits, labels, 3), IsOk());
}

}  // namespace
}  // namespace tilewire::client
