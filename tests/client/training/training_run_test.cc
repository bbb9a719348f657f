// SPDX-License-Identifier: Apache-2.0
//
// The loop of a training and its looks at what is held out, with a trainer that is made up.
#include "client/training/training_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/cord.h"
#include "client/training/element_check.h"
#include "client/training/held_out.h"
#include "tests/client/training/fake_trainer.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using tilewire::testing::StatusIs;

constexpr double kSkippedLoss = std::numeric_limits<double>::quiet_NaN();

// Examples 0, 1, 2, ... whose class is right of every second pair: 0, 1, 0, 1 of x % 3.
Dataset Numbers(int64_t count) {
  std::vector<float> inputs;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < count; ++i) {
    inputs.push_back(static_cast<float>(i));
    labels.push_back(i % 2);
  }
  return Dataset({.bytes = BytesOf(inputs), .size = sizeof(float)}, {},
                 {{.bytes = BytesOf(labels), .size = sizeof(int64_t)}});
}

absl::StatusOr<TrainingRecord> TrainNumbers(FakeTrainer* trainer, int64_t count, double hold_out,
                                            RunSettings settings,
                                            const TrainingEvents& events = {}) {
  TrainingRecord record = RunTraining(trainer, Numbers(count),
                                      *ExampleOrder::Create(count, hold_out, 5), settings, events);
  if (!record.failure.ok()) return record.failure;
  return record;
}

std::vector<int64_t> BatchSizes(const std::vector<FakeTrainer::Given>& batches) {
  std::vector<int64_t> sizes;
  for (const FakeTrainer::Given& batch : batches) sizes.push_back(batch.input_dims[0]);
  return sizes;
}

TEST(RunTraining, EveryEpochTakesEachExampleOnceAndTheSmallerBatchLast) {
  FakeTrainer trainer;
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record,
                       TrainNumbers(&trainer, 10, 0.2, {.epochs = 2, .batch = 3}));
  EXPECT_THAT(BatchSizes(trainer.updates), ElementsAre(3, 3, 2, 3, 3, 2));
  EXPECT_EQ(record.updates_of_epoch, 3);
  EXPECT_EQ(record.updates(), 6);
  EXPECT_EQ(record.examples, 16);
  EXPECT_FALSE(record.is_stopped);
  const ExampleOrder order = *ExampleOrder::Create(10, 0.2, 5);
  for (const int64_t epoch : {1, 2}) {
    std::vector<int64_t> taken;
    for (int64_t update = 3 * (epoch - 1); update < 3 * epoch; ++update) {
      const FakeTrainer::Given& batch = trainer.updates[update];
      EXPECT_EQ(batch.target_dims, batch.input_dims);
      for (size_t i = 0; i < batch.inputs.size(); ++i) {
        EXPECT_EQ(batch.targets[i], static_cast<int64_t>(batch.inputs[i]) % 2) << "its own label";
        taken.push_back(static_cast<int64_t>(batch.inputs[i]));
      }
    }
    EXPECT_EQ(taken, order.OfEpoch(epoch));
  }
}

TEST(RunTraining, ALossCountsForAsManyExamplesAsItsBatchHas) {
  FakeTrainer trainer;
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record,
                       TrainNumbers(&trainer, 5, 0, {.epochs = 1, .batch = 3}));
  ASSERT_EQ(record.epochs.size(), 1);
  EXPECT_DOUBLE_EQ(record.epochs[0].loss, (3 * 1.0 + 2 * 0.5) / 5);
  EXPECT_DOUBLE_EQ(record.epochs[0].rate, 0.2) << "of its last update";
  EXPECT_THAT(record.losses, ElementsAre(1, 0.5));
}

TEST(RunTraining, SkippedUpdatesHaveNoLoss) {
  FakeTrainer trainer;
  trainer.in_update = [](UpdateResult result) {
    result.skipped = result.update == 2 || result.update > 3;
    if (result.skipped) result.loss = std::numeric_limits<double>::infinity();
    return result;
  };
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record,
                       TrainNumbers(&trainer, 6, 0, {.epochs = 2, .batch = 2}));
  ASSERT_EQ(record.epochs.size(), 2);
  EXPECT_EQ(record.skipped(), 4);
  EXPECT_EQ(record.skipped_at_end(), 3);
  EXPECT_EQ(record.epochs[0].skipped, 1);
  EXPECT_DOUBLE_EQ(record.epochs[0].loss, (1.0 + 1.0 / 3) / 2);
  EXPECT_EQ(record.epochs[1].skipped, 3);
  EXPECT_TRUE(std::isnan(record.epochs[1].loss));
  EXPECT_TRUE(std::isnan(record.losses[1]));
  EXPECT_EQ(record.updates(), 6) << "they count";
}

TEST(RunTraining, WhatIsHeldOutIsLookedAtBeforeAndAfterEveryEpochAndNeverTrainedOn) {
  FakeTrainer trainer;
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record,
                       TrainNumbers(&trainer, 20, 0.25, {.epochs = 2, .batch = 2}));
  EXPECT_THAT(BatchSizes(trainer.evaluations), ElementsAre(2, 2, 1, 2, 2, 1, 2, 2, 1));
  const std::vector<int64_t> held_out = ExampleOrder::Create(20, 0.25, 5)->held_out();
  int64_t right = 0;
  for (const int64_t example : held_out) {
    right += example % 3 == example % 2 ? 1 : 0;
    for (const FakeTrainer::Given& batch : trainer.updates)
      EXPECT_EQ(std::count(batch.inputs.begin(), batch.inputs.end(), example), 0) << example;
  }
  for (const auto& look : {record.before, record.epochs[0].held_out, record.epochs[1].held_out}) {
    ASSERT_TRUE(look.has_value());
    EXPECT_DOUBLE_EQ(look->loss, (2 * 2 + 2 * 2 + 1 * 1) / 5.0);
    EXPECT_EQ(look->right, right);
    EXPECT_EQ(look->judged, 5);
  }
}

TEST(RunTraining, NothingHeldOutIsNotLookedAt) {
  FakeTrainer trainer;
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record,
                       TrainNumbers(&trainer, 4, 0, {.epochs = 1, .batch = 2}));
  EXPECT_THAT(trainer.evaluations, IsEmpty());
  EXPECT_FALSE(record.before.has_value());
  EXPECT_FALSE(record.held_out().has_value());
}

TEST(RunTraining, AStopWithinAnUpdateIsAResultWithoutIt) {
  FakeTrainer trainer;
  std::atomic<bool> stop = false;
  trainer.in_update = [&](const UpdateResult& usual) {
    if (usual.update == 4) stop = true;
    return usual;
  };
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record,
                       TrainNumbers(&trainer, 9, 0.3, {.epochs = 5, .batch = 2, .stop = &stop}));
  EXPECT_TRUE(record.is_stopped);
  EXPECT_EQ(record.updates(), 3);
  EXPECT_EQ(record.epochs.size(), 1);
  EXPECT_EQ(record.held_out()->loss, record.epochs[0].held_out->loss);
}

TEST(RunTraining, AStopBetweenUpdatesBeginsNoOther) {
  FakeTrainer trainer;
  std::atomic<bool> stop = false;
  const TrainingEvents events = {.updated = [&](const TrainingRecord& so_far) {
    if (so_far.updates() == 2) stop = true;
  }};
  int asked = 0;
  trainer.in_update = [&](const UpdateResult& usual) { return ++asked, usual; };
  ASSERT_OK_AND_ASSIGN(
      const TrainingRecord record,
      TrainNumbers(&trainer, 9, 0, {.epochs = 5, .batch = 2, .stop = &stop}, events));
  EXPECT_TRUE(record.is_stopped);
  EXPECT_EQ(asked, 2);
  EXPECT_THAT(record.epochs, IsEmpty());
}

TEST(RunTraining, AStopWithinALookIsAResultToo) {
  FakeTrainer trainer;
  std::atomic<bool> stop = false;
  int looks = 0;
  trainer.in_evaluation = [&] {
    if (++looks == 2) stop = true;
    return absl::OkStatus();
  };
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record,
                       TrainNumbers(&trainer, 9, 0.3, {.epochs = 5, .batch = 8, .stop = &stop}));
  EXPECT_TRUE(record.is_stopped);
  EXPECT_EQ(record.updates(), 1);
  EXPECT_THAT(record.epochs, IsEmpty()) << "its look is missing";
  EXPECT_TRUE(record.held_out().has_value()) << "that before training";
}

TEST(RunTraining, TheTrainersErrorsAreItsErrors) {
  for (const auto code : {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kCancelled}) {
    FakeTrainer trainer;
    trainer.in_update = [&](const UpdateResult& usual) -> absl::StatusOr<UpdateResult> {
      if (usual.update == 2) return absl::Status(code, "ten updates were skipped");
      return usual;
    };
    EXPECT_THAT(TrainNumbers(&trainer, 9, 0, {.epochs = 5, .batch = 2}),
                StatusIs(code, "ten updates were skipped"))
        << "nothing was stopped";
    FakeTrainer blind;
    blind.in_evaluation = [&] { return absl::Status(code, "no memory"); };
    EXPECT_THAT(TrainNumbers(&blind, 9, 0.5, {.epochs = 5, .batch = 2}),
                StatusIs(code, "no memory"));
  }
}

TEST(RunTraining, AFailureKeepsTheRecordOfWhatWasBefore) {
  FakeTrainer trainer;
  trainer.in_update = [&](const UpdateResult& usual) -> absl::StatusOr<UpdateResult> {
    if (usual.update == 4) return absl::ResourceExhaustedError("no memory");
    return usual;
  };
  const TrainingRecord record = RunTraining(&trainer, Numbers(4), *ExampleOrder::Create(4, 0, 5),
                                            {.epochs = 5, .batch = 2}, {});
  EXPECT_THAT(record.failure, StatusIs(absl::StatusCode::kResourceExhausted, "no memory"));
  EXPECT_FALSE(record.is_stopped);
  EXPECT_EQ(record.updates(), 3);
  EXPECT_EQ(record.epochs.size(), 1);
}

TEST(RunTraining, StatisticsAreTakenAfterTheLastUpdateAndBeforeTheLastLook) {
  FakeTrainer trainer;
  size_t looks_before = 0;
  trainer.in_evaluation = [&] {
    if (trainer.recalibrated.empty()) ++looks_before;
    return absl::OkStatus();
  };
  RunSettings settings{.epochs = 2, .batch = 3, .recalibrates = true};
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record, TrainNumbers(&trainer, 10, 0.2, settings));
  EXPECT_EQ(record.updates(), 6);
  ASSERT_EQ(trainer.recalibrated.size(), 3);
  EXPECT_EQ(looks_before, 2) << "before training and after the first epoch";
  std::vector<float> all;
  for (const auto& batch : trainer.recalibrated) all.insert(all.end(), batch.begin(), batch.end());
  EXPECT_EQ(all.size(), 8) << "each example that is trained on, once";
  EXPECT_EQ(std::set<float>(all.begin(), all.end()).size(), 8);
}

TEST(PrepareTraining, AsksForTheUsualAndTheLastBatch) {
  for (const bool recalibrates : {false, true}) {
    FakeTrainer trainer;
    const RunSettings settings{.batch = 3, .recalibrates = recalibrates};
    const auto order = ExampleOrder::Create(7, 0, 5);
    ASSERT_TRUE(PrepareTraining(&trainer, Numbers(7), *order, settings).ok());
    EXPECT_THAT(trainer.prepared,
                ElementsAre(std::pair(3, recalibrates), std::pair(1, recalibrates)));
    trainer.in_preparation = [](int64_t examples) {
      return examples == 1 ? absl::InvalidArgumentError("no variance") : absl::OkStatus();
    };
    EXPECT_THAT(
        PrepareTraining(&trainer, Numbers(7), *order, settings),
        StatusIs(absl::StatusCode::kInvalidArgument, "no variance (an update of 1 example"));
    EXPECT_TRUE(trainer.updates.empty());
  }
}

TEST(PrepareTraining, KeepsTheReasonOfARefusal) {
  FakeTrainer trainer;
  trainer.in_preparation = [](int64_t) {
    absl::Status refused = absl::InvalidArgumentError("no variance");
    refused.SetPayload("reason", absl::Cord("why"));
    return refused;
  };
  const absl::Status status =
      PrepareTraining(&trainer, Numbers(7), *ExampleOrder::Create(7, 0, 5), {.batch = 3});
  EXPECT_EQ(status.GetPayload("reason"), absl::Cord("why"));
}

TEST(PrepareTraining, SaysWhichElementNoUpdateTakes) {
  const auto order = ExampleOrder::Create(7, 0.3, 5);
  const RunSettings settings{.batch = 3, .sources = {"--images=x.npy", "--labels=y.npy"}};
  const struct {
    ElementBounds bounds;
    const char* message;  // null: none, inputs are 0 to 6 and labels 0 and 1
  } kCases[] = {
      {{.least = -7, .most = 6}, nullptr},
      {{.least = 0, .most = 3, .reason = "'embed' takes one of 4 by its index"},
       "--images=x.npy: 4 of example 4; allowed: 0 to 3 ('embed' takes one of 4 by its index)"},
      {{.least = 1, .most = 6}, "--images=x.npy: 0 of example 0; allowed: 1 to 6"},
      {{.least = 1, .most = 6, .besides = 0}, nullptr},
      {{.is_target = true, .least = 0, .most = 0, .besides = -1, .reason = "it has 1 class"},
       "--labels=y.npy: 1 of example 1; allowed: 0 to 0, and -1 (it has 1 class)"},
  };
  for (const auto& one : kCases) {
    FakeTrainer trainer;
    trainer.bounds = {{.least = -9, .most = 9}, one.bounds};
    const absl::Status status = PrepareTraining(&trainer, Numbers(7), *order, settings);
    if (one.message == nullptr) {
      EXPECT_THAT(status, tilewire::testing::IsOk());
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, one.message));
    }
    EXPECT_TRUE(trainer.updates.empty());
  }
}

TEST(CheckElements, NamesThePlaceWithinAnExample) {
  FakeTrainer trainer;
  const Dataset dataset({.bytes = BytesOf<float>({0, 1.5f, 2, 3, NAN, 2}), .size = 12, .dims = {3}},
                        {}, {{.bytes = BytesOf<int64_t>({0, 0}), .size = 8}});
  const ElementBounds bounds{.least = 0, .most = 2};
  EXPECT_THAT(CheckElements(dataset, {bounds}, trainer, {"--images=x.npy", ""}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--images=x.npy: 3 of example 1, element 0; allowed: 0 to 2"));
  const Dataset fractions({.bytes = BytesOf<float>({2.5f, -0.5f, NAN}), .size = 12, .dims = {3}},
                          {}, {{.bytes = BytesOf<int64_t>({0}), .size = 8}});
  EXPECT_THAT(CheckElements(fractions, {bounds}, trainer, {"--images=x.npy", ""}),
              StatusIs(absl::StatusCode::kInvalidArgument, "nan of example 0, element 2"))
      << "fractions are dropped";
}

TEST(RunTraining, TellsOfUpdatesAndEpochs) {
  FakeTrainer trainer;
  std::vector<int64_t> updates, epochs;
  const TrainingEvents events = {
      .updated = [&](const TrainingRecord& so_far) { updates.push_back(so_far.updates()); },
      .epoch_ended = [&](const EpochFigures& figures) { epochs.push_back(figures.epoch); }};
  ASSERT_OK_AND_ASSIGN(const TrainingRecord record,
                       TrainNumbers(&trainer, 4, 0, {.epochs = 2, .batch = 2}, events));
  EXPECT_THAT(updates, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(epochs, ElementsAre(1, 2));
}

// A trainer whose evaluation is what a test says.
class FixedTrainer {
 public:
  FixedTrainer(Dims dims, std::vector<float> values) : dims_(dims), values_(values) {}

  // The look at one example with these targets.
  template <typename T>
  absl::StatusOr<HeldOut> Judge(LossSpec::Kind loss, const std::vector<T>& targets,
                                const Dims& target_dims, int index = 0) {
    class Fixed final : public Trainer {
     public:
      explicit Fixed(const FixedTrainer& says) : says_(says) {}
      absl::StatusOr<Evaluation> Evaluate(absl::Span<const InputTensor>,
                                          absl::Span<const InputTensor>,
                                          const RunOptions&) const override {
        Evaluation evaluation{.loss = 0.5, .losses = {0.5}, .outputs = {}};
        evaluation.outputs.resize(1);
        OutputTensor& output = evaluation.outputs[0];
        output.dims = says_.dims_;
        output.bytes = *AlignedBuffer::Allocate(says_.values_.size() * sizeof(float));
        std::memcpy(output.bytes.data(), says_.values_.data(), output.bytes.size());
        return evaluation;
      }
      const ModelSignature& signature() const override { return none_.signature(); }
      const std::vector<TensorSpec>& targets() const override { return none_.targets(); }
      const std::vector<ParameterSpec>& parameters() const override { return none_.parameters(); }
      const std::vector<TrainingNote>& notes() const override { return none_.notes(); }
      absl::StatusOr<std::vector<ElementBounds>> Prepare(absl::Span<const InputTensor>,
                                                         absl::Span<const InputTensor>, bool,
                                                         const RunOptions&) override {
        return std::vector<ElementBounds>();
      }
      absl::StatusOr<UpdateResult> Update(absl::Span<const InputTensor>,
                                          absl::Span<const InputTensor>,
                                          const RunOptions&) override {
        return UpdateResult();
      }
      absl::Status Recalibrate(absl::Span<const InputTensor>, const RunOptions&) override {
        return absl::OkStatus();
      }
      absl::Status WriteModel(const std::string&) const override { return absl::OkStatus(); }
      int64_t written_bytes() const override { return 0; }
      absl::Status CheckPlaces(const std::string&) const override { return absl::OkStatus(); }
      absl::StatusOr<std::vector<float>> Parameter(const std::string&) const override {
        return std::vector<float>();
      }

     private:
      const FixedTrainer& says_;
      FakeTrainer none_;
    };
    const Dataset dataset({.bytes = "x", .size = 1}, {},
                          {{.bytes = BytesOf(targets),
                            .size = static_cast<int64_t>(targets.size() * sizeof(T)),
                            .dims = target_dims}});
    return EvaluateHeldOut(Fixed(*this), dataset, {0}, 1, {loss, index}, {});
  }

 private:
  Dims dims_;
  std::vector<float> values_;
};

constexpr auto kClassLoss = LossSpec::Kind::kSoftmaxCrossEntropy;

TEST(EvaluateHeldOut, ScoresOfEachPlaceAreJudged) {
  // Classes by places: 2 classes at 3 places.
  FixedTrainer maps({1, 2, 3}, {5, 1, 0, 4, 2, 0});
  ASSERT_OK_AND_ASSIGN(const HeldOut wide, maps.Judge<int64_t>(kClassLoss, {0, 1, 1}, {3}));
  EXPECT_EQ(wide.judged, 3);
  EXPECT_EQ(wide.right, 2) << "of equals the first";
  EXPECT_DOUBLE_EQ(wide.accuracy(), 2.0 / 3);
  ASSERT_OK_AND_ASSIGN(const HeldOut narrow, maps.Judge<int32_t>(kClassLoss, {1, 0, 0}, {3}));
  EXPECT_EQ(narrow.right, 1);
  FixedTrainer odd({1, 3}, {NAN, 1, 2});
  EXPECT_EQ(odd.Judge<int64_t>(kClassLoss, {2}, {})->right, 0) << "NaN is not passed over";
}

TEST(EvaluateHeldOut, SignsOfLogitsAreJudged) {
  FixedTrainer logits({1, 4}, {-1, 2, 0, 3});
  ASSERT_OK_AND_ASSIGN(
      const HeldOut held_out,
      logits.Judge<float>(LossSpec::Kind::kBinaryCrossEntropy, {0, 1, 0, 0.4f}, {4}));
  EXPECT_EQ(held_out.judged, 4);
  EXPECT_EQ(held_out.right, 3);
}

TEST(EvaluateHeldOut, OtherLossesKnowNoRightAndWrong) {
  FixedTrainer numbers({1, 2}, {1, 2});
  for (const auto loss : {LossSpec::Kind::kMeanSquaredError, LossSpec::Kind::kHuber}) {
    ASSERT_OK_AND_ASSIGN(const HeldOut held_out, numbers.Judge<float>(loss, {1, 2}, {2}));
    EXPECT_EQ(held_out.judged, 0);
    EXPECT_DOUBLE_EQ(held_out.loss, 0.5);
  }
}

TEST(EvaluateHeldOut, OutputsThatCannotBeJudgedAreAnError) {
  FixedTrainer scores({1, 3}, {1, 2, 3});
  const auto kInternal = absl::StatusCode::kInternal;
  EXPECT_THAT(
      scores.Judge<int64_t>(kClassLoss, {0, 1}, {2}),
      StatusIs(kInternal, "output 0 of shape [1,3] has 12 bytes, its target of shape [1,2]"));
  EXPECT_THAT(scores.Judge<float>(LossSpec::Kind::kBinaryCrossEntropy, {1}, {1}),
              StatusIs(kInternal, "has 12 bytes, its target"));
  EXPECT_THAT(scores.Judge<int64_t>(kClassLoss, {0}, {}, 1),
              StatusIs(kInternal, "the evaluation has no output 1"));
}

}  // namespace
}  // namespace tilewire::client
