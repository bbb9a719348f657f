// SPDX-License-Identifier: Apache-2.0
//
// A network with convolutions whose weights are real: residual, depthwise, relu6, with batch
// normalizations. It learns small pictures in this test, and is tuned with others.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/trainer.h"
#include "engine/tuner.h"
#include "engine/tuning/calibration.h"
#include "engine/tuning/choice/choice.h"
#include "engine/tuning/conversions.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/model_source.h"
#include "engine/tuning/trial_runs.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_results.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kSize = 16, kClasses = 6, kFloats = 3 * kSize * kSize, kBatch = 32;

// Textures and shapes in any colours and places, beneath noise.
class Pictures {
 public:
  Pictures(int64_t count, uint32_t seed) : count_(count), random_(seed) {
    pixels.reserve(count * kFloats);
    for (int64_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<int64_t>(random_() % kClasses));
      Draw(labels.back());
    }
  }

  InputTensor Images(int64_t first, int64_t count) const {
    return {{count, 3, kSize, kSize},
            Layout::kNchw,
            {{reinterpret_cast<const char*>(&pixels[first * kFloats]),
              count * kFloats * sizeof(float)}}};
  }
  InputTensor Labels(int64_t first, int64_t count) const {
    return {{count},
            Layout::kNchw,
            {{reinterpret_cast<const char*>(&labels[first]), count * sizeof(int64_t)}}};
  }
  std::vector<TuningExample> Examples() const {
    std::vector<TuningExample> examples;
    for (int64_t i = 0; i < count_; ++i) examples.push_back({{"image", Images(i, 1)}});
    return examples;
  }

  std::vector<float> pixels;
  std::vector<int64_t> labels;

 private:
  float Between(float low, float high) {
    return low + (high - low) * static_cast<float>(random_() >> 8) / 16777216.0f;
  }

  // Whether a place, relative to the middle and in units of the shape's size, is drawn.
  static bool IsDrawn(int64_t kind, float x, float y, float pitch) {
    const float radius = std::hypot(x, y);
    if (kind == 0) return std::sin(x * pitch) > 0;
    if (kind == 1) return std::sin(y * pitch) > 0;
    if (kind == 2) return std::sin(x * pitch) * std::sin(y * pitch) > 0;
    if (kind == 3) return radius < 1;
    if (kind == 4) return radius < 1 && radius > 0.6f;
    return std::min(std::fabs(x), std::fabs(y)) < 0.25f && radius < 1.2f;
  }

  void Draw(int64_t kind) {
    const float middle_x = Between(5, 11), middle_y = Between(5, 11), size = Between(4, 6);
    const float pitch = Between(5, 8), noise = Between(0.1f, 0.5f);
    float behind[3], apart[3];
    for (int c = 0; c < 3; ++c) {
      behind[c] = Between(-1, 1);
      apart[c] = Between(0.5f, 1.5f) * (random_() % 2 == 0 ? 1.0f : -1.0f);
    }
    for (int c = 0; c < 3; ++c) {
      for (int64_t i = 0; i < kSize * kSize; ++i) {
        const float x = (static_cast<float>(i % kSize) - middle_x) / size;
        const float y = (static_cast<float>(i / kSize) - middle_y) / size;
        const float drawn = IsDrawn(kind, x, y, pitch) ? apart[c] : 0;
        pixels.push_back(behind[c] + drawn + noise * (Between(-1, 1) + Between(-1, 1)));
      }
    }
  }

  int64_t count_;
  std::mt19937 random_;
};

// Convolution, normalization, activation.
class Network {
 public:
  Network() : model_(13) { model_.Input("image", {-1, 3, kSize, kSize}); }

  std::string Block(const std::string& name, const std::string& input, std::vector<int64_t> weights,
                    int64_t stride, int64_t groups, const std::string& activation) {
    const int64_t outputs = weights[0], pad = weights[2] / 2;
    model_.Floats(name + "_w", weights, Random(weights));
    for (const auto& [part, value] : {std::pair("_scale", 1.0f), std::pair("_shift", 0.0f),
                                      std::pair("_mean", 0.0f), std::pair("_variance", 1.0f)})
      model_.Floats(name + part, {outputs}, std::vector<float>(outputs, value));
    model_.Node("Conv", {input, name + "_w"}, {name + "_c"},
                {Ints("pads", {pad, pad, pad, pad}), Ints("strides", {stride, stride}),
                 Int("group", groups)});
    model_.Node("BatchNormalization",
                {name + "_c", name + "_scale", name + "_shift", name + "_mean", name + "_variance"},
                {name + "_n"});
    if (activation.empty()) return name + "_n";
    std::vector<std::string> inputs = {name + "_n"};
    if (activation == "Clip") {
      model_.Floats(name + "_low", {}, {0}).Floats(name + "_high", {}, {6});
      inputs.insert(inputs.end(), {name + "_low", name + "_high"});
    }
    model_.Node(activation, inputs, {name});
    return name;
  }

  std::string File() {
    const std::string stem = Block("stem", "image", {16, 3, 3, 3}, 1, 1, "Clip");
    const std::string wide = Block("wide", stem, {32, 16, 1, 1}, 1, 1, "Clip");
    const std::string each = Block("each", wide, {32, 1, 3, 3}, 2, 32, "Clip");
    const std::string narrow = Block("narrow", each, {24, 32, 1, 1}, 1, 1, "");
    const std::string body = Block("body", narrow, {24, 24, 3, 3}, 1, 1, "Relu");
    const std::string beside = Block("beside", body, {24, 24, 3, 3}, 1, 1, "");
    model_.Node("Add", {narrow, beside}, {"sum"}).Node("Relu", {"sum"}, {"sum_r"});
    const std::string end = Block("end", "sum_r", {48, 24, 3, 3}, 2, 1, "Relu");
    model_.Node("GlobalAveragePool", {end}, {"mean"}).Node("Flatten", {"mean"}, {"flat"});
    model_.Floats("classes_w", {kClasses, 48}, Random({kClasses, 48}));
    model_.Floats("classes_b", {kClasses}, std::vector<float>(kClasses, 0.0f));
    model_.Node("Gemm", {"flat", "classes_w", "classes_b"}, {"scores"}, {Int("transB", 1)});
    model_.Output("scores");
    const std::string path = ::testing::TempDir() + "/untrained_network.onnx";
    WriteFile(path, model_.Serialize());
    return path;
  }

 private:
  std::vector<float> Random(const std::vector<int64_t>& dims) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    const float bound = std::sqrt(6 / static_cast<float>(count / dims[0]));
    std::vector<float> numbers(count);
    for (float& number : numbers)
      number = bound * (static_cast<float>(random_() >> 8) / 8388608.0f - 1);
    return numbers;
  }

  OnnxBuilder model_;
  std::mt19937 random_{1};
};

absl::Status Learn(const std::string& file, const Pictures& pictures, const std::string& learned) {
  constexpr int64_t kRounds = 4;
  const auto updates = static_cast<int64_t>(pictures.labels.size()) / kBatch;
  TrainingSpec spec;
  spec.losses = {LossSpec()};
  spec.optimizer = {.kind = OptimizerSpec::Kind::kAdamW, .weight_decay = 0.02};
  spec.schedule = {.kind = ScheduleSpec::Kind::kCosine, .rate = 1e-2, .updates = kRounds * updates};
  auto trainer = CreateTrainer(&EngineOfTests(), file, spec);
  if (!trainer.ok()) return trainer.status();
  for (int64_t update = 0; update < kRounds * updates; ++update) {
    const int64_t first = update % updates * kBatch;
    const auto result = (*trainer)->Update({pictures.Images(first, kBatch)},
                                           {pictures.Labels(first, kBatch)}, RunOptions());
    if (!result.ok()) return result.status();
  }
  return (*trainer)->WriteModel(learned);
}

class TrainedNetworkTest : public ::testing::Test {
 protected:
  static const std::string& Learned() {
    static const auto* const path = [] {
      auto* learned = new std::string(::testing::TempDir() + "/trained_network.onnx");
      EXPECT_THAT(Learn(Network().File(), Pictures(1600, 1), *learned), IsOk());
      return learned;
    }();
    return *path;
  }

  static TuningSpec SpecOf(const char* budget, uint64_t seed) {
    TuningSpec spec(ErrorBudget::Parse(budget).value());
    spec.may_be_bf16 = cpu::BestIsa().Includes(cpu::Isa::kAvx512Bf16);
    spec.seed = seed;
    spec.time = absl::Seconds(30);  // a busy machine takes all of it for a second choice, others 5
    return spec;
  }

  const Pictures pictures_{800, 2};  // the network has not seen them
};

// It knows its pictures, though not all: answers near the border between two classes change first.
TEST_F(TrainedNetworkTest, KeepsItsBudgetOnPicturesThatWereHeldOut) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    TuningSpec spec = SpecOf("top1_changed<=1%", seed);
    spec.labels = pictures_.labels;
    const auto result = TuneInTime(Learned(), pictures_.Examples(), spec, /*takes_all=*/true);
    ASSERT_THAT(result.status(), IsOk());
    EXPECT_EQ(result->nodes.size(), 8u);
    EXPECT_TRUE(result->keeps_budget) << "seed " << seed << ": " << result->held_out.value;
    EXPECT_EQ(result->held_out.examples, 400);
    ASSERT_TRUE(result->accuracy.has_value());
    EXPECT_GT(result->accuracy->exact_right, 340);
    EXPECT_LT(result->accuracy->exact_right, 400);
    EXPECT_GE(result->accuracy->tuned_right, result->accuracy->exact_right - 4);
  }
}

TEST_F(TrainedNetworkTest, KeepsItsAccuracyWithItsLabels) {
  TuningSpec spec = SpecOf("accuracy_drop(scores)<=1%", 1);
  spec.labels = pictures_.labels;
  const auto result = TuneInTime(Learned(), pictures_.Examples(), spec, /*takes_all=*/true);
  ASSERT_THAT(result.status(), IsOk());
  EXPECT_TRUE(result->keeps_budget) << result->held_out.value;
  EXPECT_GE(result->accuracy->tuned_right, result->accuracy->exact_right - 4);
}

// Integers in all layers, with the corrections, change few answers in a hundred.
TEST_F(TrainedNetworkTest, AllLayersOfIntegersChangeFewAnswers) {
  TuningSpec spec = SpecOf("top1_changed<=1%", 1);
  spec.may_be_bf16 = spec.may_stay_exact = false;
  spec.time = absl::Minutes(5);  // nothing is left to choose, so that it ends before
  const auto result = TuneInTime(Learned(), pictures_.Examples(), spec, /*takes_all=*/true);
  ASSERT_THAT(result.status(), IsOk());
  ASSERT_TRUE(result->changed_share.has_value());
  EXPECT_LE(result->changed_share->value, 0.03);
  EXPECT_GT(result->chosen_l2, 0);
  EXPECT_LT(result->chosen_l2, 0.05);
}

// All that can be chosen keeps a budget so large, half of it, too: only that it missed elsewhere
// tells the first choice from others.
TEST_F(TrainedNetworkTest, ASecondChoiceIsNotTheOneThatMissed) {
  const TuningSpec spec = SpecOf("l2<=1", 1);
  Engine& engine = EngineOfTests();
  const auto exact = engine.LoadModel(Learned(), {.takes_tuning = false}).value();
  const auto source = tuning::ModelSource::Read(Learned()).value();
  auto layers = tuning::FindLayers(source).value();
  tuning::FitWeightsTo(cpu::BestIsa(), source, &layers);  // others are not faster without VNNI
  const auto set =
      tuning::ExampleSet::Create(exact->signature(), pictures_.Examples(), 0.9, 1).value();
  const auto runs = tuning::TrialRuns::Create(&engine, &set, "", nullptr, absl::Minutes(1)).value();
  const auto exact_outputs = runs->Run(*exact, set.chosen, 0).value();
  const auto all = tuning::FindConversions(source, layers, std::vector<bool>(layers.size(), true));
  const auto calibration =
      tuning::Calibration::Observe(source, all, *runs, set, exact->signature(), [](int64_t) {
      }).value();
  const tuning::ChoiceInputs inputs{source, layers, calibration,   *runs, set,
                                    spec,   *exact, exact_outputs, 0,     absl::InfiniteFuture()};
  tuning::Choice choice(inputs);
  ASSERT_THAT(choice.Run(), IsOk());
  ASSERT_TRUE(choice.best().has_value());
  const tuning::Precisions first = choice.best()->precisions;
  if (first == tuning::Precisions(layers.size(), TunedPrecision::kExact))
    GTEST_SKIP() << "the exact model is the fastest, and misses nothing";
  ASSERT_THAT(choice.RunAgain(/*misses_budget=*/true), IsOk());
  ASSERT_TRUE(choice.best().has_value());
  EXPECT_NE(choice.best()->precisions, first);
}

}  // namespace
}  // namespace tilewire::testing
