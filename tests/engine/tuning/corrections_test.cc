// SPDX-License-Identifier: Apache-2.0
//
// Biases that make up for rounding, channels that share a scale evenly, and what a tuning keeps of
// both.
#include "engine/tuning/corrections/corrections.h"

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/tuner.h"
#include "engine/tuning/conversions.h"
#include "engine/tuning/corrections/equalization.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/output_error.h"
#include "engine/tuning/qdq_file.h"
#include "engine/tuning/range_histogram.h"
#include "engine/tuning/tuned_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_models.h"

namespace tilewire::testing {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using tuning::Corrections;
using tuning::ModelSource;

constexpr float kUneven[] = {1, 0.25f, 1.0f / 16, 1.0f / 64};

// An inverted residual: wider, depthwise, narrower. Channels of the wide tensors differ by
// a factor of up to 64, which the weights that read them make up for.
OnnxBuilder UnevenModel(const std::string& activation = "Relu") {
  const auto scaled = [](const std::vector<float>& numbers, bool is_larger) {
    const size_t each = numbers.size() / 16;
    std::vector<float> result;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const float factor = kUneven[i / each % 4];
      result.push_back((numbers[i] - 1) * (is_larger ? 1 / factor : factor));
    }
    return result;
  };
  OnnxBuilder model(13);
  model.Input("x", {-1, 8, 12, 12});
  model.Floats("w_wide", {16, 8, 1, 1}, scaled(MadeUp({16, 8, 1, 1}, 3), false));
  model.Floats("w_deep", {16, 1, 3, 3}, scaled(MadeUp({16, 1, 3, 3}, 4), true));
  model.Floats("w_narrow", {8, 16, 1, 1}).Floats("zero", {}, {0}).Floats("six", {}, {6});
  model.Node("Conv", {"x", "w_wide"}, {"wide"});
  if (activation == "Clip") {
    model.Node("Clip", {"wide", "zero", "six"}, {"wide_r"});
  } else {
    model.Node(activation, {"wide"}, {"wide_r"});
  }
  model.Node("Conv", {"wide_r", "w_deep"}, {"deep"},
             {Ints("pads", {1, 1, 1, 1}), Int("group", 16)});
  model.Node("Relu", {"deep"}, {"deep_r"}).Node("Conv", {"deep_r", "w_narrow"}, {"y"});
  return model.Output("y");
}

double L2Of(const std::vector<float>& exact, const std::vector<float>& other) {
  double squares = 0, differences = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    squares += exact[i] * exact[i];
    differences += (other[i] - exact[i]) * (other[i] - exact[i]);
  }
  return std::sqrt(differences / squares);
}

TEST(EqualizationTest, FactorsMakeChannelsEven) {
  // A depthwise reader has a scale for each channel: all become as large as the largest.
  EXPECT_EQ(tuning::FactorsOf({8, 2, 0, 4}, {1, 1, 1, 1}, {4, 1, 1, 1}, {}),
            (std::vector<float>{1, 0.25f, 1, 0.5f}));
  // A dense one has one scale for both: half the way, in the sense of products.
  const auto dense = tuning::FactorsOf({8, 2}, {1, 1}, {1, 2, 1, 1}, {});
  EXPECT_FLOAT_EQ(dense[0], 1);
  EXPECT_FLOAT_EQ(dense[1], 0.5f);
  // Larger weights read the second: there its numbers become larger, up to what the first has.
  const auto read = tuning::FactorsOf({8, 2}, {1, 4}, {1, 2, 1, 1}, {});
  EXPECT_FLOAT_EQ(read[1], 0.25f);
  // A channel that reaches the bound of a Clip keeps it, others may not exceed it.
  const auto clipped = tuning::FactorsOf({6, 3, 1}, {1, 1, 64}, {1, 3, 1, 1}, 6);
  EXPECT_EQ(clipped[0], 1);
  for (size_t c = 1; c < 3; ++c) EXPECT_LE((c == 1 ? 3 : 1) / clipped[c], 6) << c;
  EXPECT_THAT(tuning::FactorsOf({0, 0}, {1, 1}, {1, 2, 1, 1}, {}), Each(1));
}

TEST(EqualizationTest, FindsTensorsThatFactorsPassTo) {
  const struct {
    const char* activation;
    size_t count;
  } kCases[] = {{"Relu", 2}, {"Clip", 2}, {"Sigmoid", 1}};
  for (const auto& test : kCases) {
    const Opened opened = Open(UnevenModel(test.activation).Serialize());
    const auto found = tuning::FindEqualizable(*opened.source, opened.layers);
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_THAT(*found, SizeIs(test.count)) << test.activation;
    if (test.count == 1) continue;
    EXPECT_EQ((*found)[0].name, "wide_r");
    EXPECT_EQ((*found)[0].most.has_value(), std::string(test.activation) == "Clip");
  }
  // A tensor that something else reads, too, must stay as it is.
  const Opened read = Open(UnevenModel().Output("wide_r").Serialize());
  EXPECT_THAT(*tuning::FindEqualizable(*read.source, read.layers), SizeIs(1));
  const Opened before = Open(UnevenModel().Node("Neg", {"wide"}, {"z"}).Output("z").Serialize());
  EXPECT_THAT(*tuning::FindEqualizable(*before.source, before.layers), SizeIs(1));
}

TEST(EqualizationTest, LosesLessWhereChannelsAreUneven) {
  const Opened opened = Open(UnevenModel().Serialize());
  const auto conversions =
      tuning::FindConversions(*opened.source, opened.layers, {true, true, true});
  auto params = ParamsFor(*opened.source, conversions.tensors);
  tuning::QdqWriter writer(*opened.source, opened.layers);
  const tuning::Precisions all(3, TunedPrecision::kInt8);
  const auto exact = FloatsOf(*LoadBytes(UnevenModel().Serialize()), kResidualInput);
  const auto plain = LoadBytes(writer.Write(all, params).value());
  // The channels of "wide_r" become about as large as the largest of them, whose range holds.
  Corrections corrections{.tensors = {{"wide_r", 0, 1, {}}}};
  for (int c = 0; c < 16; ++c) corrections.tensors[0].factors.push_back(kUneven[c % 4]);
  const auto even = LoadBytes(writer.Write(all, params, corrections).value());
  const double before = L2Of(exact, FloatsOf(*plain, kResidualInput));
  const double after = L2Of(exact, FloatsOf(*even, kResidualInput));
  EXPECT_LT(after, 0.5 * before);
  EXPECT_THAT(StepsOfFloats(*even, "convolution"), SizeIs(0));
}

TEST(BiasShiftTest, IsSubtractedWhereThereIsABiasOrRoomForOne) {
  // A product with a sum after it, a Gemm with a bias, a Gemm without, and one whose bias is shared
  // out among its outputs, which has no room.
  OnnxBuilder model(13);
  model.Input("x", {2, 4}).Floats("w", {4, 4}).Floats("b", {4}).Floats("one", {1});
  model.Node("MatMul", {"x", "w"}, {"m"}).Node("Add", {"m", "b"}, {"a"});
  model.Node("Gemm", {"a", "w", "b"}, {"g"}).Node("Gemm", {"g", "w"}, {"h"});
  model.Node("Gemm", {"h", "w", "one"}, {"y"}).Output("a").Output("g").Output("h").Output("y");
  const Opened opened = Open(model.Serialize());
  ASSERT_THAT(opened.layers, SizeIs(4));
  EXPECT_EQ(opened.layers[0].sum, 1);
  EXPECT_TRUE(opened.layers[2].can_shift);
  EXPECT_FALSE(opened.layers[3].can_shift);
  const network::QuantizationParams params = tuning::ByteParams({-16, 16});
  tuning::QdqWriter writer(*opened.source, opened.layers);
  for (int layer = 0; layer < 3; ++layer) {
    tuning::Precisions one(4, TunedPrecision::kExact);
    one[layer] = TunedPrecision::kInt8;
    const tuning::TensorParams of_layer = {{opened.layers[layer].input, params}};
    const auto plain = FloatsOf(*LoadBytes(writer.Write(one, of_layer).value()), {2, 4});
    const Corrections corrections{.shifts = {{layer, {0.5f, 0, 0, -1}}}};
    const auto file = writer.Write(one, of_layer, corrections);
    ASSERT_TRUE(file.ok()) << file.status();
    const auto shifted = FloatsOf(*LoadBytes(*file), {2, 4});
    // Biases are rounded to the scale of the products, of at most 1 / 127 * 32 / 255.
    for (int i = 0; i < 8; ++i) {
      const float wanted = i % 4 == 0 ? -0.5f : i % 4 == 3 ? 1 : 0;
      EXPECT_NEAR(shifted[layer * 8 + i] - plain[layer * 8 + i], wanted, 1e-3) << layer << " " << i;
    }
  }
}

class TunedUneven {
 public:
  TunedUneven() {
    WriteFile(path_, UnevenModel().Serialize());
    for (int i = 0; i < 8; ++i) numbers_.push_back(MadeUp(kResidualInput, i + 1));
    std::vector<TuningExample> examples;
    for (const auto& one : numbers_) examples.push_back({{"x", ViewOf(one, kResidualInput)}});
    TuningSpec spec(ErrorBudget::Parse("l2<=1").value());
    spec.may_stay_exact = false;
    result_ = Tune(&EngineOfTests(), path_, examples, spec).value();
  }
  const TuningResult& result() const { return result_; }
  tuned::ModelTuning Parsed() const { return tuning::ParseTuning(result_.tuning).value(); }

 private:
  const std::string path_ = ::testing::TempDir() + "/uneven.onnx";
  std::vector<std::vector<float>> numbers_;
  TuningResult result_;
};

TEST(TunedCorrectionsTest, AreMeasuredAndKeptInTheTuning) {
  const TunedUneven tuned;
  EXPECT_THAT(tuned.result().tuning, HasSubstr("factor: ["));
  EXPECT_THAT(tuned.result().tuning, HasSubstr("bias_shift: ["));
  const Opened opened = Open(UnevenModel().Serialize());
  std::map<std::string, Precision> precisions;
  const auto file = ApplyTuning(tuned.Parsed(), *opened.source, &precisions);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file, tuned.result().model);  // bit for bit
  // Without them, the same ranges lose more.
  tuned::ModelTuning plain = tuned.Parsed();
  for (auto& layer : *plain.mutable_layer()) layer.clear_bias_shift();
  const auto exact = FloatsOf(*LoadBytes(UnevenModel().Serialize()), kResidualInput);
  const auto without = ApplyTuning(plain, *opened.source, &precisions);
  EXPECT_LT(L2Of(exact, FloatsOf(*LoadBytes(*file), kResidualInput)),
            L2Of(exact, FloatsOf(*LoadBytes(*without), kResidualInput)));
}

TEST(TunedCorrectionsTest, AreRefusedByName) {
  const TunedUneven tuned;
  const Opened opened = Open(UnevenModel().Serialize());
  using Tuning = tuned::ModelTuning;
  const auto equalized = [](Tuning* t) {
    for (auto& tensor : *t->mutable_tensor()) {
      if (tensor.factor_size() > 0) return &tensor;
    }
    return static_cast<tuned::TunedTensor*>(nullptr);
  };
  const struct {
    const char* message;
    std::function<void(Tuning*)> change;
  } kCases[] = {
      {"its bias_shift must be 16 finite numbers",
       [](Tuning* t) { t->mutable_layer(0)->mutable_bias_shift()->Resize(3, 0); }},
      {"its bias_shift must be 16 finite numbers",
       [](Tuning* t) {
         t->mutable_layer(1)->mutable_bias_shift()->Resize(15, 0);
         t->mutable_layer(1)->add_bias_shift(std::nanf(""));
       }},
      {"has factors, which are of tensors between two convolutions of int8",
       [](Tuning* t) { t->mutable_layer(1)->set_precision(tuned::EXACT); }},
      {"tensor 'x' has factors",
       [](Tuning* t) {
         for (auto& tensor : *t->mutable_tensor()) {
           if (tensor.name() == "x") tensor.mutable_factor()->Resize(8, 1);
         }
       }},
      {"its factors must be 16 positive numbers",
       [&](Tuning* t) { equalized(t)->set_factor(2, 0); }},
      {"its factors must be 16 positive numbers", [&](Tuning* t) { equalized(t)->add_factor(1); }},
  };
  for (const auto& test : kCases) {
    tuned::ModelTuning tuning = tuned.Parsed();
    test.change(&tuning);
    std::map<std::string, Precision> precisions;
    const auto file = ApplyTuning(tuning, *opened.source, &precisions);
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument) << test.message;
    EXPECT_THAT(std::string(file.status().message()), HasSubstr(test.message));
  }
}

TEST(ProbabilityTest, OfKeepingAShare) {
  using tuning::ProbabilityToKeep;
  // Nothing changes, not even with errors of twice the size.
  EXPECT_EQ(ProbabilityToKeep({0}, 180, 180, 0.005), 1);
  // A change in 180 is more than 0.5 %: e^-0.5 that none comes of half a change.
  EXPECT_NEAR(ProbabilityToKeep({1}, 180, 180, 0.005), std::exp(-0.5), 1e-12);
  // At most 10 of 2,000 where 5 are expected, by tables of Poisson's distribution.
  EXPECT_NEAR(ProbabilityToKeep({10}, 2000, 2000, 0.005), 0.98631, 1e-5);
  EXPECT_NEAR(ProbabilityToKeep({20}, 2000, 2000, 0.005), 0.58304, 1e-5);
  EXPECT_LT(ProbabilityToKeep({2000}, 2000, 2000, 0.005), 1e-9);
  // No more worse answers than better ones where 5 of each are expected: half of all but ties,
  // which Skellam's distribution gives 0.127833.
  EXPECT_NEAR(ProbabilityToKeep({10, 10}, 1000, 1000, 0), 0.563917, 1e-6);
  EXPECT_NEAR(ProbabilityToKeep({0, 10}, 1000, 1000, 0), 1, 1e-9);
}

}  // namespace
}  // namespace tilewire::testing
