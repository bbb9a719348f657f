// SPDX-License-Identifier: Apache-2.0
//
// Models that learn: with the same bits on any number of threads, by the formulas of their
// updates, and without a trace of an update that is skipped, stopped or refused.
#include "engine/trainer.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_join.h"
#include "engine/onnx/training_refusal.h"
#include "tests/engine/facade/trained_model.h"

namespace tilewire::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr int64_t kRows = 24;

TrainingBatch Rows(uint32_t seed, int64_t count = kRows) { return {{count, 6}, 4, seed}; }
TrainingBatch Images(uint32_t seed, int64_t count = 12) { return {{count, 3, 8, 8}, 4, seed}; }

TrainingSpec With(OptimizerSpec optimizer, double rate) {
  TrainingSpec spec = CrossEntropy(rate);
  spec.optimizer = optimizer;
  return spec;
}

struct Learned {
  std::vector<double> losses;
  ParametersByName parameters;
};

Learned Learn(Trainer& trainer, const std::vector<TrainingBatch>& batches, int updates) {
  Learned learned;
  for (int i = 0; i < updates; ++i) {
    const TrainingBatch& batch = batches[i % batches.size()];
    const auto result = trainer.Update(batch.inputs(), batch.targets(), {});
    EXPECT_THAT(result, IsOk());
    if (!result.ok()) return learned;
    EXPECT_EQ(result->update, i + 1);
    EXPECT_FALSE(result->skipped);
    learned.losses.push_back(result->loss);
  }
  learned.parameters = ParametersOf(trainer);
  return learned;
}

struct LearningCase {
  const char* why;
  OnnxBuilder model;
  std::vector<TrainingBatch> batches;
  TrainingSpec spec;
  int updates;
};

std::vector<LearningCase> LearningCases() {
  TrainingSpec clipped = With({.kind = OptimizerSpec::Kind::kAdamW, .weight_decay = 0.01}, 0.02);
  clipped.clip_norm = 0.5;
  TrainingSpec annealed = With({.momentum = 0.9, .nesterov = true, .weight_decay = 1e-4}, 0.05);
  annealed.schedule.kind = ScheduleSpec::Kind::kCosine;
  annealed.schedule.updates = 40;
  return {
      {"rows by SGD", Perceptron(), {Rows(1), Rows(2)}, CrossEntropy(0.2), 60},
      {"rows by AdamW, clipped", Perceptron(), {Rows(1), Rows(2)}, clipped, 60},
      {"rows, the last batch smaller",
       Perceptron(),
       {Rows(1), Rows(2, 7)},
       With({.kind = OptimizerSpec::Kind::kAdam}, 0.02),
       60},
      {"images by Nesterov's momentum", ConvolutionNet(), {Images(3), Images(4)}, annealed, 40},
      {"images, up and down by deconvolutions",
       Autoencoder(),
       {Images(3), Images(4)},
       With({.kind = OptimizerSpec::Kind::kAdam}, 0.05),
       60},
  };
}

TEST(TrainerTest, LossesFallWithTheSameBitsOnAnyThreads) {
  for (const LearningCase& one : LearningCases()) {
    SCOPED_TRACE(one.why);
    Learned first;
    for (int threads : {1, 1, 2, 7}) {
      ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(one.model, one.spec, threads));
      const Learned learned = Learn(*trainer, one.batches, one.updates);
      ASSERT_EQ(learned.losses.size(), one.updates);
      if (first.losses.empty()) first = learned;
      EXPECT_EQ(first.losses, learned.losses) << threads << " threads";
      EXPECT_EQ(first.parameters, learned.parameters) << threads << " threads";
    }
    EXPECT_LT(first.losses.back(), 0.5 * first.losses.front());
  }
}

// y = x w^T + b with the mean of squares: gradients are 2 / (N O) (y - t)^T x and its sums.
TEST(TrainerTest, AnUpdateIsItsFormula) {
  OnnxBuilder model(13);
  model.Input("x", {-1, 2}).Floats("w", {3, 2}, {1, -1, 0.5f, 2, 0, 1}).Floats("b", {3}, {1, 0, 2});
  model.Node("Gemm", {"x", "w", "b"}, {"y"}, {Int("transB", 1)}).Output("y");
  TrainingSpec spec = CrossEntropy(0.5);
  spec.losses[0].kind = LossSpec::Kind::kMeanSquaredError;
  spec.optimizer.weight_decay = 0.25;
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(model, spec));
  const std::vector<float> x = {1, 2, -1, 0.5f}, t = {0, 1, 2, 3, -1, 0};
  const std::vector<float> w = {1, -1, 0.5f, 2, 0, 1}, b = {1, 0, 2};
  double loss = 0, squares = 0;
  std::vector<double> dw(6, 0), db(3, 0);
  for (int n = 0; n < 2; ++n) {
    for (int o = 0; o < 3; ++o) {
      double y = b[o];
      for (int i = 0; i < 2; ++i) y += w[o * 2 + i] * x[n * 2 + i];
      const double d = y - t[n * 3 + o];
      loss += d * d / 6;
      db[o] += 2 * d / 6;
      for (int i = 0; i < 2; ++i) dw[o * 2 + i] += 2 * d * x[n * 2 + i] / 6;
    }
  }
  for (double g : dw) squares += g * g;
  for (double g : db) squares += g * g;
  const std::string inputs = Bytes(x), targets = Bytes(t);
  const std::vector<InputTensor> given = {{{2, 2}, Layout::kNchw, {inputs}}};
  const std::vector<InputTensor> wanted = {{{2, 3}, Layout::kNchw, {targets}}};
  ASSERT_OK_AND_ASSIGN(const UpdateResult result, trainer->Update(given, wanted, {}));
  EXPECT_NEAR(result.loss, loss, 1e-6);
  EXPECT_EQ(result.rate, 0.5);
  EXPECT_NEAR(result.gradient_norm, std::sqrt(squares), 1e-6);
  const ParametersByName after = ParametersOf(*trainer);
  for (int i = 0; i < 6; ++i)
    EXPECT_NEAR(after.at("w")[i], w[i] - 0.5 * (dw[i] + 0.25 * w[i]), 1e-6) << i;
  // Biases do not decay by default.
  for (int o = 0; o < 3; ++o) EXPECT_NEAR(after.at("b")[o], b[o] - 0.5 * db[o], 1e-6) << o;
}

TEST(TrainerTest, ASkippedUpdateLeavesNoTrace) {
  const TrainingSpec spec = With({.kind = OptimizerSpec::Kind::kAdam}, 0.02);
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(ConvolutionNet(), spec));
  ASSERT_OK_AND_ASSIGN(auto other, TrainerOf(ConvolutionNet(), spec));
  const TrainingBatch good = Images(1);
  TrainingBatch bad = Images(2);
  bad.SetInput(5, std::numeric_limits<float>::quiet_NaN());
  const std::vector<std::string> statistics = {"mean", "variance"};
  const ParametersByName before = ParametersOf(*trainer, statistics);
  ASSERT_OK_AND_ASSIGN(UpdateResult result, trainer->Update(bad.inputs(), bad.targets(), {}));
  EXPECT_TRUE(result.skipped);
  EXPECT_EQ(result.update, 1);
  EXPECT_EQ(before, ParametersOf(*trainer, statistics));
  for (Trainer* one : {trainer.get(), other.get()})
    ASSERT_THAT(one->Update(good.inputs(), good.targets(), {}), IsOk());
  EXPECT_EQ(ParametersOf(*trainer, statistics), ParametersOf(*other, statistics));
  EXPECT_NE(before, ParametersOf(*trainer, statistics));
}

TEST(TrainerTest, TenSkippedUpdatesInARowAreAnError) {
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(Perceptron(), CrossEntropy()));
  const TrainingBatch good = Rows(1);
  TrainingBatch bad = Rows(2);
  bad.SetInput(0, std::numeric_limits<float>::infinity());
  const ParametersByName before = ParametersOf(*trainer);
  for (int i = 0; i < Trainer::kMostSkipped - 1; ++i)
    ASSERT_THAT(trainer->Update(bad.inputs(), bad.targets(), {}), IsOk());
  EXPECT_THAT(trainer->Update(bad.inputs(), bad.targets(), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "10 updates in a row"));
  EXPECT_EQ(before, ParametersOf(*trainer));
  ASSERT_OK_AND_ASSIGN(UpdateResult result, trainer->Update(good.inputs(), good.targets(), {}));
  EXPECT_FALSE(result.skipped);
  ASSERT_OK_AND_ASSIGN(result, trainer->Update(bad.inputs(), bad.targets(), {}));
  EXPECT_TRUE(result.skipped);
}

TEST(TrainerTest, AStoppedUpdateLeavesNoTrace) {
  const TrainingSpec spec = With({.momentum = 0.9}, 0.05);
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(ConvolutionNet(), spec));
  ASSERT_OK_AND_ASSIGN(auto other, TrainerOf(ConvolutionNet(), spec));
  const TrainingBatch batch = Images(1);
  const std::vector<std::string> statistics = {"mean", "variance"};
  for (Trainer* one : {trainer.get(), other.get()})
    ASSERT_THAT(one->Update(batch.inputs(), batch.targets(), {}), IsOk());
  const ParametersByName before = ParametersOf(*trainer, statistics);
  int stops = 0;
  for (int allowed = 0;; ++allowed) {
    int calls = 0;
    RunOptions options;
    options.interrupted = [&] {
      return calls++ < allowed ? absl::OkStatus() : absl::CancelledError("stopped");
    };
    const auto result = trainer->Update(batch.inputs(), batch.targets(), options);
    if (result.ok()) break;
    ASSERT_THAT(result, StatusIs(absl::StatusCode::kCancelled, "stopped"));
    ASSERT_EQ(before, ParametersOf(*trainer, statistics)) << "after " << allowed << " calls";
    ++stops;
  }
  EXPECT_GT(stops, 10);
  ASSERT_THAT(other->Update(batch.inputs(), batch.targets(), {}), IsOk());
  EXPECT_EQ(ParametersOf(*trainer, statistics), ParametersOf(*other, statistics));
}

TEST(TrainerTest, WhatDoesNotFitIsRefusedAndChangesNothing) {
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(Perceptron(), CrossEntropy()));
  const ParametersByName before = ParametersOf(*trainer);
  const TrainingBatch batch = Rows(1);
  const auto refused = [&](std::vector<InputTensor> inputs, std::vector<InputTensor> targets,
                           const char* message) {
    EXPECT_THAT(trainer->Update(inputs, targets, {}), StatusIs(kInvalid, message));
  };
  for (int64_t label : {int64_t{-1}, int64_t{4}, int64_t{1} << 40}) {
    TrainingBatch wrong = batch;
    wrong.SetLabel(5, label);
    refused(wrong.inputs(), wrong.targets(),
            absl::StrCat("label [5] is ", label, "; allowed: 0 to 3").c_str());
  }
  refused({}, batch.targets(), "0 inputs given, 1 are needed");
  refused(batch.inputs(), {}, "0 targets given");
  std::vector<InputTensor> tensors = batch.inputs();
  tensors[0].dims = {kRows, 5};
  refused(tensors, batch.targets(), "input 'x': shape [24,5] does not match");
  tensors[0].dims = {kRows - 1, 6};
  refused(tensors, batch.targets(), "bytes given");
  tensors = batch.targets();
  tensors[0].dims = {kRows - 1};
  refused(batch.inputs(), tensors, "targets of output 'y' [24,4]: shape [23]");
  tensors[0].dims = {kRows};
  tensors[0].pieces[0].remove_suffix(1);
  refused(batch.inputs(), tensors, "labels [24] of s64 or s32, or probabilities [24,4] of f32");
  EXPECT_EQ(before, ParametersOf(*trainer));
}

TEST(TrainerTest, FrozenParametersStayAndRatesAreOfGroups) {
  TrainingSpec spec = CrossEntropy(0.1);
  spec.groups = {{.pattern = "w1", .frozen = true}, {.pattern = "b*", .rate_factor = 0}};
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(Perceptron(), spec));
  for (const ParameterSpec& parameter : trainer->parameters())
    EXPECT_EQ(parameter.frozen, parameter.name == "w1");
  const ParametersByName before = ParametersOf(*trainer);
  ASSERT_EQ(before.size(), 4);
  Learn(*trainer, {Rows(1)}, 3);
  const ParametersByName after = ParametersOf(*trainer);
  for (const char* name : {"w1", "b1", "b2"}) EXPECT_EQ(before.at(name), after.at(name)) << name;
  EXPECT_NE(before.at("w2"), after.at("w2"));
  EXPECT_THAT(trainer->Parameter("w3"), StatusIs(absl::StatusCode::kNotFound, "'w3'"));
}

TEST(TrainerTest, SettingsThatTheModelRefuses) {
  const auto refused = [](const OnnxBuilder& model, const char* message,
                          void (*change)(TrainingSpec&)) {
    TrainingSpec spec = CrossEntropy();
    change(spec);
    EXPECT_THAT(TrainerOf(model, spec), StatusIs(kInvalid, message));
  };
  const OnnxBuilder model = Perceptron();
  refused(model, "losses: there are none", [](TrainingSpec& s) { s.losses.clear(); });
  refused(model, "there is no output 'z'; the model has 'y'",
          [](TrainingSpec& s) { s.losses[0].output = "z"; });
  refused(model, "group 'fc*' matches no parameter; there are ",
          [](TrainingSpec& s) { s.groups = {{.pattern = "fc*"}}; });
  refused(model, "all parameters of the model are frozen",
          [](TrainingSpec& s) { s.groups = {{.pattern = "*", .frozen = true}}; });
  refused(model, "class_weights: 3 numbers for the 4 classes", [](TrainingSpec& s) {
    s.losses[0].class_weights = {1, 1, 1};
  });
  refused(model, "class_weights: 3 numbers for the 4 classes", [](TrainingSpec& s) {
    s.losses[0] = {.kind = LossSpec::Kind::kBinaryCrossEntropy, .class_weights = {1, 1, 1}};
  });
  refused(model, "optimizer: momentum: -1", [](TrainingSpec& s) { s.optimizer.momentum = -1; });
  OnnxBuilder bare(13);
  bare.Input("x", {-1, 4}).Node("Relu", {"x"}, {"y"}).Output("y");
  refused(bare, "the model has no floating-point parameters", [](TrainingSpec&) {});
  OnnxBuilder classes(13);
  classes.Input("x", {-1, 6}).Floats("w", {6, 4}).Node("MatMul", {"x", "w"}, {"s"});
  classes.Node("ArgMax", {"s"}, {"y"}, {Int("axis", 1)}).Output("y", onnx::TensorProto::INT64);
  refused(classes, "output 'y' is of s64; a loss needs f32", [](TrainingSpec&) {});
  EXPECT_THAT(CreateTrainer(&EngineOfThreads(1), "/no/such/file.onnx", CrossEntropy()),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST(TrainerTest, EvaluationsChangeNothing) {
  const TrainingSpec spec = With({.momentum = 0.9}, 0.05);
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(ConvolutionNet(), spec));
  ASSERT_OK_AND_ASSIGN(auto other, TrainerOf(ConvolutionNet(), spec));
  const TrainingBatch batch = Images(1), held_out = Images(9, 5);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const Evaluation one,
                         trainer->Evaluate(held_out.inputs(), held_out.targets(), {}));
    ASSERT_OK_AND_ASSIGN(const Evaluation again, trainer->Evaluate(held_out.inputs(), {}, {}));
    ASSERT_EQ(one.outputs.size(), 1);
    EXPECT_EQ(one.outputs[0].dims, (Dims{5, 4}));
    EXPECT_GT(one.loss, 0);
    EXPECT_EQ(again.loss, 0);
    EXPECT_EQ(std::memcmp(one.outputs[0].bytes.data(), again.outputs[0].bytes.data(), 80), 0);
    for (Trainer* each : {trainer.get(), other.get()})
      ASSERT_THAT(each->Update(batch.inputs(), batch.targets(), {}), IsOk());
  }
  const std::vector<std::string> statistics = {"mean", "variance"};
  EXPECT_EQ(ParametersOf(*trainer, statistics), ParametersOf(*other, statistics));
}

TEST(TrainerTest, PreparationTellsWhatTheRunWouldFind) {
  OnnxBuilder model(13);
  model.Input("x", {-1, 2}).Floats("scale", {2}, {1, 1}).Floats("shift", {2}, {0, 0});
  model.Floats("mean", {2}, {1, 2}).Floats("variance", {2}, {3, 4});
  model.Node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"y", "", ""},
             {Int("training_mode", 1)});
  model.Output("y");
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(model, CrossEntropy()));
  EXPECT_THAT(absl::StrJoin(NotesOf(*trainer), "\n"),
              HasSubstr("training_mode is 1 in 1 BatchNormalization node"));
  const TrainingBatch two({2, 2}, 2, 1), one({1, 2}, 2, 1);
  EXPECT_THAT(trainer->Prepare(two.inputs(), two.targets(), true, {}), IsOk());
  const auto refused = trainer->Prepare(one.inputs(), one.targets(), false, {});
  EXPECT_THAT(refused, StatusIs(kInvalid, "one element in the batch have no variance"));
  EXPECT_EQ(RefusalOf(refused.status()), TrainingRefusal::kNoVariance);
  const TrainingBatch rows = Rows(1);
  ASSERT_OK_AND_ASSIGN(auto plain, TrainerOf(Perceptron(), CrossEntropy()));
  EXPECT_THAT(plain->Prepare(rows.inputs(), rows.targets(), false, {}), IsOk());
  const auto uncalibrated = plain->Prepare(rows.inputs(), rows.targets(), true, {});
  EXPECT_THAT(uncalibrated, StatusIs(kInvalid, "no normalization whose statistics follow a batch"));
  EXPECT_EQ(RefusalOf(uncalibrated.status()), TrainingRefusal::kNoStatistics);
  EXPECT_EQ(ParametersOf(*plain), ParametersOf(*TrainerOf(Perceptron(), CrossEntropy()).value()));
  OnnxBuilder broken(13);
  broken.Input("x", {-1, 2}).Floats("w", {2, 2}, {1, NAN, 2, 3});
  broken.Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  ASSERT_OK_AND_ASSIGN(auto with_nan, TrainerOf(broken, CrossEntropy()));
  const auto nan = with_nan->Prepare(two.inputs(), two.targets(), false, {});
  EXPECT_THAT(nan, StatusIs(kInvalid, "parameter 'w' holds nan, which is not finite"));
  EXPECT_EQ(RefusalOf(nan.status()), TrainingRefusal::kOther);
}

// The model normalizes its input, so that the batch's statistics are known.
TEST(TrainerTest, RunningStatisticsFollowTheBatch) {
  OnnxBuilder model(13);
  model.Input("x", {-1, 2}).Floats("scale", {2}, {1, 1}).Floats("shift", {2}, {0, 0});
  model.Floats("mean", {2}, {1, 2}).Floats("variance", {2}, {3, 4});
  model.Node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"y"},
             {Float("momentum", 0.75f)});
  model.Output("y");
  const std::vector<float> x = {1, 0, 2, 4, 6, 2};
  const std::string inputs = Bytes(x), labels = Bytes(std::vector<int64_t>{0, 1, 0});
  const std::vector<InputTensor> given = {{{3, 2}, Layout::kNchw, {inputs}}};
  const std::vector<InputTensor> wanted = {{{3}, Layout::kNchw, {labels}}};
  TrainingSpec spec = CrossEntropy();
  for (bool frozen : {false, true}) {
    spec.frozen_statistics = frozen;
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(model, spec));
    ASSERT_THAT(trainer->Update(given, wanted, {}), IsOk());
    const ParametersByName after = ParametersOf(*trainer, {"mean", "variance"});
    // Means of the batch are 3 and 2, unbiased variances 7 and 4.
    const std::vector<float> moved_mean = {0.75f * 1 + 0.25f * 3, 2};
    const std::vector<float> moved_variance = {0.75f * 3 + 0.25f * 7, 4};
    const std::vector<float> mean = {1, 2}, variance = {3, 4};
    for (int c = 0; c < 2; ++c) {
      EXPECT_NEAR(after.at("mean")[c], (frozen ? mean : moved_mean)[c], 1e-6);
      EXPECT_NEAR(after.at("variance")[c], (frozen ? variance : moved_variance)[c], 1e-6);
    }
    EXPECT_NE(after.at("scale"), (std::vector<float>{1, 1}));
  }
}

// A layer that does not learn answers as before, whatever the batch is.
TEST(TrainerTest, ANormalizationThatIsFrozenKeepsItsStatistics) {
  OnnxBuilder model(13);
  model.Input("x", {-1, 2}).Floats("scale", {2}, {1, 1}).Floats("shift", {2}, {0, 0});
  model.Floats("mean", {2}, {1, 2}).Floats("variance", {2}, {3, 4}).Floats("b", {2}, {0, 0});
  model.Node("BatchNormalization", {"x", "scale", "shift", "mean", "variance"}, {"n"});
  model.Node("Add", {"n", "b"}, {"y"});
  model.Output("y");
  const std::string inputs = Bytes(std::vector<float>{1, 0, 2, 4, 6, 2});
  const std::string labels = Bytes(std::vector<int64_t>{0, 1, 0});
  TrainingSpec spec = CrossEntropy();
  for (bool has_frozen_shift : {false, true}) {
    spec.groups = {{.pattern = has_frozen_shift ? "s*" : "scale", .frozen = true}};
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(model, spec));
    ASSERT_THAT(trainer->Update({{{{3, 2}, Layout::kNchw, {inputs}}}},
                                {{{{3}, Layout::kNchw, {labels}}}}, {}),
                IsOk());
    const ParametersByName after = ParametersOf(*trainer, {"mean", "variance", "b"});
    EXPECT_EQ(after.at("mean") == (std::vector<float>{1, 2}), has_frozen_shift);
    EXPECT_EQ(after.at("variance") == (std::vector<float>{3, 4}), has_frozen_shift);
    EXPECT_NE(after.at("b"), (std::vector<float>{0, 0}));
  }
}

// Folding and fusion round otherwise; nothing else changes. A rate of 0 leaves a layer as it is,
// too, but does not freeze it.
TEST(TrainerTest, AFrozenTrunkComputesWhatItDidBefore) {
  TrainingSpec frozen = With({.momentum = 0.9}, 0.05), still = frozen;
  still.frozen_statistics = true;
  for (const char* name : {"c1", "cb1", "scale", "shift"}) {
    frozen.groups.push_back({.pattern = name, .frozen = true});
    still.groups.push_back({.pattern = name, .rate_factor = 0});
  }
  ASSERT_OK_AND_ASSIGN(auto trunk, TrainerOf(ConvolutionNet(), frozen));
  ASSERT_OK_AND_ASSIGN(auto whole, TrainerOf(ConvolutionNet(), still));
  const Learned of_trunk = Learn(*trunk, {Images(1), Images(2)}, 6);
  const Learned of_whole = Learn(*whole, {Images(1), Images(2)}, 6);
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(of_trunk.losses[i], of_whole.losses[i], 1e-5) << i;
  for (const char* name : {"c2", "w", "b"}) {
    const std::vector<float>& got = of_trunk.parameters.at(name);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], of_whole.parameters.at(name)[i], 1e-5) << name << ", " << i;
  }
  const std::vector<std::string> statistics = {"mean", "variance"};
  EXPECT_EQ(ParametersOf(*trunk, statistics).at("mean"), std::vector<float>(8, 0));
  EXPECT_EQ(ParametersOf(*trunk, statistics).at("variance"), std::vector<float>(8, 1));
}

TEST(TrainerTest, NotesSayWhatIsPeculiar) {
  const auto notes_of = [](const OnnxBuilder& model) {
    const auto trainer = TrainerOf(model, CrossEntropy());
    EXPECT_THAT(trainer, IsOk());
    return absl::StrJoin(NotesOf(**trainer), "\n");
  };
  const char* const folded = "no batch normalization: if there was any";
  const char* const softmax = "Output 'y' is a softmax already";
  EXPECT_THAT(notes_of(Perceptron()), Not(AnyOf(HasSubstr(folded), HasSubstr(softmax))));
  EXPECT_THAT(notes_of(ConvolutionNet()), Not(HasSubstr(folded)));
  OnnxBuilder bare(13);
  bare.Input("x", {-1, 3, 4, 4}).Floats("w", {2, 3, 4, 4}).Floats("b", {2});
  bare.Node("Conv", {"x", "w", "b"}, {"c"}).Node("Flatten", {"c"}, {"f"});
  bare.Node("Softmax", {"f"}, {"y"}).Output("y");
  EXPECT_THAT(notes_of(bare), AllOf(HasSubstr(folded), HasSubstr(softmax)));
  OnnxBuilder rows(17);
  rows.Input("x", {-1, 3, 4, 4}).Floats("w", {2, 3, 4, 4}).Floats("b", {2}).Floats("g", {2});
  rows.Node("Conv", {"x", "w", "b"}, {"c"}).Node("Flatten", {"c"}, {"f"});
  rows.Node("LayerNormalization", {"f", "g"}, {"y"}).Output("y");
  EXPECT_THAT(notes_of(rows), Not(HasSubstr(folded)));
  OnnxBuilder headed(13);
  headed.Input("x", {-1, 3, 4, 4}).Floats("w", {2, 3, 1, 1}).Floats("scale", {2});
  headed.Floats("shift", {2}).Floats("mean", {2}, {0, 0}).Floats("variance", {2}, {1, 1});
  headed.Floats("w2", {2, 2, 4, 4}).Floats("b2", {2});
  headed.Node("Conv", {"x", "w"}, {"c"});
  headed.Node("BatchNormalization", {"c", "scale", "shift", "mean", "variance"}, {"n"});
  headed.Node("Conv", {"n", "w2", "b2"}, {"d"}).Node("Flatten", {"d"}, {"y"}).Output("y");
  TrainingSpec spec = CrossEntropy();
  for (const char* name : {"w", "scale", "shift"})
    spec.groups.push_back({.pattern = name, .frozen = true});
  ASSERT_OK_AND_ASSIGN(auto trunk, TrainerOf(headed, spec));
  EXPECT_THAT(absl::StrJoin(NotesOf(*trunk), "\n"), Not(HasSubstr(folded)));
}

// Rounding trains what follows it, and nothing before it.
TEST(TrainerTest, NotesNameFunctionsOfNoGradient) {
  const char* const flat = "have a gradient of 0, so that parameters before them learn nothing";
  for (const char* op : {"Round", "Floor", "Ceil", "Sign", "Tanh"}) {
    OnnxBuilder model(13);
    model.Input("x", {-1, 6}).Floats("w1", {5, 6}).Floats("w2", {4, 5});
    model.Node("Floor", {"x"}, {"whole"});  // nothing before it learns
    model.Node("Gemm", {"whole", "w1"}, {"h"}, {Int("transB", 1)}).Node(op, {"h"}, {"r"});
    model.Node("Gemm", {"r", "w2"}, {"y"}, {Int("transB", 1)}).Output("y");
    ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(model, CrossEntropy()));
    const std::string notes = absl::StrJoin(NotesOf(*trainer), "\n");
    if (op == std::string("Tanh")) {
      EXPECT_THAT(notes, Not(HasSubstr(flat)));
      continue;
    }
    EXPECT_THAT(notes, AllOf(HasSubstr(flat), HasSubstr("'node_r' (")));
    EXPECT_THAT(notes, Not(HasSubstr("node_whole")));
    const ParametersByName before = ParametersOf(*trainer);
    Learn(*trainer, {Rows(1)}, 1);
    EXPECT_EQ(before.at("w1"), ParametersOf(*trainer).at("w1"));
  }
}

TEST(TrainerTest, AWrittenModelAnswersAsTheTrainerEvaluates) {
  ASSERT_OK_AND_ASSIGN(auto trainer, TrainerOf(ConvolutionNet(), CrossEntropy(0.05)));
  Learn(*trainer, {Images(1), Images(2)}, 6);
  const std::string path = ::testing::TempDir() + "/trained.onnx";
  ASSERT_THAT(trainer->WriteModel(path), IsOk());
  ASSERT_OK_AND_ASSIGN(const auto model, EngineOfThreads(1).LoadModel(path));
  const TrainingBatch batch = Images(5, 3);
  ASSERT_OK_AND_ASSIGN(const auto answer, model->Run(batch.inputs(), {}, {}));
  ASSERT_OK_AND_ASSIGN(const Evaluation evaluation, trainer->Evaluate(batch.inputs(), {}, {}));
  for (int i = 0; i < 12; ++i) {
    float of_model, of_trainer;
    std::memcpy(&of_model, answer[0].bytes.data() + i * 4, 4);
    std::memcpy(&of_trainer, evaluation.outputs[0].bytes.data() + i * 4, 4);
    EXPECT_NEAR(of_model, of_trainer, 1e-5 * (1 + std::abs(of_trainer))) << i;
  }
  // A trainer of the file evaluates bit by bit what this one does: the model folds normalizations.
  ASSERT_OK_AND_ASSIGN(const auto again, CreateTrainer(&EngineOfThreads(1), path, CrossEntropy()));
  ASSERT_OK_AND_ASSIGN(const Evaluation same, again->Evaluate(batch.inputs(), {}, {}));
  const std::vector<std::string> statistics = {"mean", "variance"};
  EXPECT_EQ(ParametersOf(*again, statistics), ParametersOf(*trainer, statistics));
  EXPECT_EQ(std::memcmp(same.outputs[0].bytes.data(), evaluation.outputs[0].bytes.data(), 48), 0);
}

}  // namespace
}  // namespace tilewire::testing
