// SPDX-License-Identifier: Apache-2.0
//
// Losses of an update: their targets, several of them, and bounds of their gradients.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/engine/facade/trained_model.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kLossRows = 24;

TrainingBatch LabelledRows() { return {{kLossRows, 6}, 4, 1}; }

struct StepTaken {
  double loss = 0;
  ParametersByName parameters;
};

TEST(TrainedLossesTest, TargetsOfEveryKind) {
  const TrainingBatch batch = LabelledRows();
  std::vector<int32_t> labels;
  std::vector<float> probabilities(kLossRows * 4, 0);
  const absl::string_view wide = batch.targets()[0].pieces[0];
  for (int64_t n = 0; n < kLossRows; ++n) {
    int64_t label;
    std::memcpy(&label, wide.data() + n * 8, sizeof(label));
    labels.push_back(static_cast<int32_t>(label));
    probabilities[n * 4 + label] = 1;
  }
  const std::string narrow = Bytes(labels), real = Bytes(probabilities);
  const std::vector<InputTensor> targets[] = {batch.targets(),
                                              {{{kLossRows}, Layout::kNchw, {narrow}}},
                                              {{{kLossRows, 4}, Layout::kNchw, {real}}}};
  std::vector<double> losses;
  for (const std::vector<InputTensor>& one : targets) {
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(Perceptron(), CrossEntropy()));
    ASSERT_OK_AND_ASSIGN(const UpdateResult result, trainer->Update(batch.inputs(), one, {}));
    losses.push_back(result.loss);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_NEAR(losses[0], losses[2], 1e-6);
}

// Some of these batches have no label that counts, the others have inputs that are not finite.
TEST(TrainedLossesTest, TenSkippedUpdatesTellOfLabelsThatDoNotCount) {
  TrainingSpec spec = CrossEntropy();
  spec.losses[0].ignore_index = 1;
  spec.losses[0].class_weights = {0, 1, 1, 1};
  TrainingBatch ignored({2, 6}, 4, 1), infinite({2, 6}, 4, 2);
  for (int64_t label : {0, 1}) ignored.SetLabel(label, label);
  infinite.SetLabel(0, 2);
  infinite.SetInput(0, std::numeric_limits<float>::infinity());
  const auto after = [&](int unlabelled) {
    auto trainer = TrainerOf(Perceptron(), spec).value();
    for (int update = 1;; ++update) {
      const TrainingBatch& batch = update <= unlabelled ? ignored : infinite;
      const auto result = trainer->Update(batch.inputs(), batch.targets(), {});
      if (update == Trainer::kMostSkipped) return result.status();
      EXPECT_THAT(result, IsOk());
      EXPECT_TRUE(result.ok() && result->skipped);
    }
  };
  constexpr auto kFailed = absl::StatusCode::kFailedPrecondition;
  EXPECT_THAT(after(10), StatusIs(kFailed,
                                  "; 10 of these batches had no label that counts in a loss: all "
                                  "of theirs are ignored, or of classes whose weight is 0"));
  EXPECT_THAT(after(5), StatusIs(kFailed, "; 5 of these batches had no label that counts"));
  EXPECT_THAT(after(0).message(), ::testing::Not(::testing::HasSubstr("label")));
}

TEST(TrainedLossesTest, LabelsOfFourBytesCountAsThoseOfEight) {
  TrainingSpec spec = CrossEntropy();
  spec.losses[0].ignore_index = 3;
  auto trainer = TrainerOf(Perceptron(), spec).value();
  const TrainingBatch batch({2, 6}, 4, 1);
  const std::string labels = Bytes<int32_t>({3, 3});
  absl::Status status;
  for (int update = 0; update < Trainer::kMostSkipped; ++update)
    status = trainer->Update(batch.inputs(), {{{{2}, Layout::kNchw, {labels}}}}, {}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition, "no label that counts"));
}

// The look at several losses has each of them beside their sum; a loss in which nothing counts is
// the mean of nothing.
TEST(TrainedLossesTest, AnEvaluationHasEachLoss) {
  OnnxBuilder model = Perceptron();
  model.Node("Tanh", {"h"}, {"hidden"}).Output("hidden");
  TrainingSpec spec = CrossEntropy();
  spec.losses[0].ignore_index = 0;
  spec.losses.push_back({.kind = LossSpec::Kind::kMeanSquaredError, .output = "hidden"});
  ASSERT_OK_AND_ASSIGN(const auto trainer, TrainerOf(model, spec));
  TrainingBatch batch({2, 6}, 4, 1);
  const std::string zeros(2 * 16 * 4, '\0');
  const auto losses = [&](int64_t label) {
    for (int64_t i : {0, 1}) batch.SetLabel(i, label);
    std::vector<InputTensor> targets = batch.targets();
    targets.push_back({{2, 16}, Layout::kNchw, {zeros}});
    const auto evaluation = trainer->Evaluate(batch.inputs(), targets, {});
    EXPECT_THAT(evaluation, IsOk());
    EXPECT_EQ(evaluation->losses.size(), 2u);
    EXPECT_TRUE(label == 0 || evaluation->loss == evaluation->losses[0] + evaluation->losses[1]);
    return evaluation->losses;
  };
  const std::vector<double> counted = losses(1), ignored = losses(0);
  EXPECT_TRUE(std::isfinite(counted[0]));
  EXPECT_TRUE(std::isnan(ignored[0]));
  EXPECT_GT(counted[1], 0);
  EXPECT_EQ(counted[1], ignored[1]);
}

// As those of GoogLeNet's auxiliary classifiers: a step of plain SGD is linear in the gradient, so
// that of both losses is the sum of the steps of each.
TEST(TrainedLossesTest, LossesOfSeveralOutputsAreAdded) {
  OnnxBuilder model = Perceptron();
  model.Node("Tanh", {"h"}, {"hidden"}).Output("hidden");
  TrainingSpec spec = CrossEntropy();
  const TrainingBatch batch = LabelledRows();
  const std::string zeros(kLossRows * 16 * 4, '\0');
  std::vector<InputTensor> targets = batch.targets();
  const auto learned = [&](const TrainingSpec& of, std::vector<InputTensor> wanted) {
    auto trainer = TrainerOf(model, of);
    EXPECT_THAT(trainer, IsOk());
    const auto result = (*trainer)->Update(batch.inputs(), wanted, {});
    EXPECT_THAT(result, IsOk());
    return StepTaken{result->loss, ParametersOf(**trainer)};
  };
  ASSERT_OK_AND_ASSIGN(const auto untrained, TrainerOf(model, spec));
  const ParametersByName before = ParametersOf(*untrained);
  const StepTaken first = learned(spec, targets);
  TrainingSpec squares = spec;
  squares.losses = {{.kind = LossSpec::Kind::kMeanSquaredError, .output = "hidden"}};
  const InputTensor hidden = {{kLossRows, 16}, Layout::kNchw, {zeros}};
  const StepTaken second = learned(squares, {hidden});
  spec.losses.push_back(squares.losses[0]);
  spec.losses[1].factor = 0.25;
  targets.push_back(hidden);
  const StepTaken both = learned(spec, targets);
  EXPECT_NEAR(both.loss, first.loss + 0.25 * second.loss, 1e-6);
  for (const auto& [name, was] : before) {
    const std::vector<float>&one = first.parameters.at(name), &other = second.parameters.at(name);
    for (size_t i = 0; i < was.size(); ++i) {
      const double step = (one[i] - was[i]) + 0.25 * (other[i] - was[i]);
      EXPECT_NEAR(both.parameters.at(name)[i] - was[i], step, 1e-6) << name << " " << i;
    }
  }
  EXPECT_NE(first.parameters.at("w1"), both.parameters.at("w1"));
}

// Parameters after two updates of squares to zero, where `add` makes y of q, k and v, which are
// [2,2,3,4].
ParametersByName AfterAttention(void (*add)(OnnxBuilder*)) {
  OnnxBuilder model(23);
  model.Input("x", {2, 2, 3, 4});
  for (const char* name : {"q", "k", "v"}) {
    const std::string weights = absl::StrCat("w", name);
    model.Floats(weights, {4, 4}).Node("MatMul", {"x", weights}, {name});
  }
  add(&model);
  TrainingSpec spec = CrossEntropy(0.5);
  spec.losses[0].kind = LossSpec::Kind::kMeanSquaredError;
  const auto trainer = TrainerOf(model.Output("y"), spec);
  EXPECT_THAT(trainer, IsOk());
  if (!trainer.ok()) return {};
  uint32_t seed = 3;
  const std::string x = Bytes(NumbersFrom(&seed, 48)), zeros(48 * 4, '\0');
  for (int update = 0; update < 2; ++update) {
    EXPECT_THAT((*trainer)->Update({{{{2, 2, 3, 4}, Layout::kNchw, {x}}}},
                                   {{{{2, 2, 3, 4}, Layout::kNchw, {zeros}}}}, {}),
                IsOk());
  }
  return ParametersOf(**trainer);
}

TEST(TrainedLossesTest, AttentionLearnsAsTheOperationsThatItConsistsOf) {
  const ParametersByName whole = AfterAttention([](OnnxBuilder* model) {
    model->Node("Attention", {"q", "k", "v"}, {"y"});
  });
  const ParametersByName parts = AfterAttention([](OnnxBuilder* model) {
    model->Node("Transpose", {"k"}, {"t"}, {Ints("perm", {0, 1, 3, 2})});
    model->Floats("half", {}, {0.5f}).Node("MatMul", {"q", "t"}, {"s"});
    model->Node("Mul", {"s", "half"}, {"scores"}).Node("Softmax", {"scores"}, {"shares"});
    model->Node("MatMul", {"shares", "v"}, {"y"});
  });
  ASSERT_EQ(whole.size(), 3);
  for (const auto& [name, expected] : parts) {
    ASSERT_TRUE(whole.contains(name)) << name;
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(whole.at(name)[i], expected[i], 1e-6) << name << " " << i;
  }
}

// The mean of the squares of y = x w + x v, for x the unit matrix, w = (1, 3) and v = (0, 0), has
// the gradient (1, 3) by both: each number is bounded by itself, then all four by their norm.
TEST(TrainedLossesTest, GradientsAreBoundedByValueAndByNorm) {
  OnnxBuilder model(13);
  model.Input("x", {2, 2}).Floats("w", {2, 1}, {1, 3}).Floats("v", {2, 1}, {0, 0});
  model.Node("MatMul", {"x", "w"}, {"a"}).Node("MatMul", {"x", "v"}, {"b"});
  model.Node("Add", {"a", "b"}, {"y"}).Output("y");
  const std::string unit = Bytes(std::vector<float>{1, 0, 0, 1}), zeros(8, '\0');
  struct Bounds {
    double value, norm, group_decay;
    float first, second;  // of w afterwards
  };
  const auto cut = static_cast<float>(1 / std::sqrt(20.0)), both = 1 / std::sqrt(10.0f);
  for (const Bounds& one :
       {Bounds{0, 0, 0, 0.5f, 1.5f}, Bounds{2, 0, 0, 0.5f, 2},
        Bounds{0, 1, 0, 1 - cut / 2, 3 - 3 * cut / 2}, Bounds{2, 1, 0, 1 - both / 2, 3 - both},
        Bounds{0, 0, 0.5, 0.25f, 0.75f}}) {
    TrainingSpec spec = CrossEntropy(0.5);
    spec.losses[0].kind = LossSpec::Kind::kMeanSquaredError;
    spec.clip_value = one.value;
    spec.clip_norm = one.norm;
    spec.groups = {{.pattern = "w", .weight_decay = one.group_decay}};
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(model, spec));
    ASSERT_OK_AND_ASSIGN(const UpdateResult result,
                         trainer->Update({{{{2, 2}, Layout::kNchw, {unit}}}},
                                         {{{{2, 1}, Layout::kNchw, {zeros}}}}, {}));
    EXPECT_NEAR(result.gradient_norm, std::sqrt(20.0), 1e-6) << "before it is clipped";
    const std::vector<float> w = ParametersOf(*trainer).at("w");
    EXPECT_NEAR(w[0], one.first, 1e-6) << one.value << " " << one.norm << " " << one.group_decay;
    EXPECT_NEAR(w[1], one.second, 1e-6) << one.value << " " << one.norm << " " << one.group_decay;
  }
}

TEST(TrainedLossesTest, ANoteNamesASigmoidBeforeABinaryCrossEntropy) {
  OnnxBuilder model(13);
  model.Input("x", {-1, 6}).Floats("w", {6, 2}).Node("MatMul", {"x", "w"}, {"h"});
  model.Node("Sigmoid", {"h"}, {"y"}).Output("y");
  TrainingSpec spec = CrossEntropy();
  ASSERT_OK_AND_ASSIGN(const auto of_classes, TrainerOf(model, spec));
  EXPECT_THAT(NotesOf(*of_classes), ::testing::IsEmpty());
  spec.losses[0].kind = LossSpec::Kind::kBinaryCrossEntropy;
  ASSERT_OK_AND_ASSIGN(const auto of_switches, TrainerOf(model, spec));
  EXPECT_THAT(NotesOf(*of_switches),
              ::testing::ElementsAre(::testing::HasSubstr("Output 'y' is a sigmoid already")));
}

}  // namespace
}  // namespace tilewire::testing
