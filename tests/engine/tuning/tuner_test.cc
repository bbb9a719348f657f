// SPDX-License-Identifier: Apache-2.0
#include "engine/tuner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/layer_times.h"
#include "engine/tuning/report/answers.h"
#include "engine/tuning/report/reasons.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_models.h"

namespace tilewire::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Made-up pictures, and examples that refer to them.
struct Examples {
  std::vector<std::vector<float>> numbers;
  std::vector<TuningExample> examples;
};

Examples MakeExamples(int count) {
  Examples made;
  for (int i = 0; i < count; ++i) made.numbers.push_back(MadeUp(kResidualInput, i + 1));
  for (const std::vector<float>& numbers : made.numbers)
    made.examples.push_back({{"x", ViewOf(numbers, kResidualInput)}});
  return made;
}

std::string WriteResidualModel() {
  std::string path = ::testing::TempDir() + "/to_be_tuned.onnx";
  WriteFile(path, ResidualModel().Serialize());
  return path;
}

TuningSpec SpecOf(const char* budget) { return TuningSpec(ErrorBudget::Parse(budget).value()); }

int Int8Nodes(const TuningResult& result) {
  int count = 0;
  for (const TunedNode& node : result.nodes) count += node.precision == TunedPrecision::kInt8;
  return count;
}

TEST(TunerTest, KeepsTheBudgetOnExamplesThatWereHeldOut) {
  const Examples made = MakeExamples(24);
  TuningSpec spec = SpecOf("l2<=0.02");
  double fraction = 0;
  std::string texts;
  spec.progress = [&](const TuningProgress& progress) {
    EXPECT_GE(progress.fraction, fraction);
    fraction = progress.fraction;
    texts += progress.text + "\n";
  };
  const auto result = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->keeps_budget) << result->held_out.value;
  EXPECT_LE(result->held_out.value, 0.02);
  EXPECT_EQ(result->held_out.examples, 12);
  EXPECT_EQ(result->chosen.examples, 12);
  EXPECT_GT(Int8Nodes(*result), 0);
  EXPECT_LT(result->tuned_bytes, result->exact_bytes + 4000);
  EXPECT_EQ(fraction, 1);
  EXPECT_THAT(texts, HasSubstr("layer 5 of 5 alone: node_y"));

  // The file says what the result says, bit for bit.
  const std::string path = ::testing::TempDir() + "/tuned.onnx";
  ASSERT_TRUE(WriteTunedModel(*result, path).ok());
  const auto tuned = EngineOfTests().LoadModel(path).value();
  EXPECT_EQ(FloatsOf(*tuned, kResidualInput), FloatsOf(*LoadBytes(result->model), kResidualInput));
  const size_t real =
      StepsOfFloats(*tuned, "convolution").size() + StepsOfFloats(*tuned, "inner_product").size();
  EXPECT_EQ(static_cast<int>(real) + Int8Nodes(*result), 5);
}

TEST(TunerTest, TakesFewerLayersForASmallerBudget) {
  const Examples made = MakeExamples(8);
  const std::string path = WriteResidualModel();
  TuningSpec all = SpecOf("l2<=1");
  all.may_stay_exact = false;
  const auto int8 = Tune(&EngineOfTests(), path, made.examples, all);
  ASSERT_TRUE(int8.ok()) << int8.status();
  EXPECT_EQ(Int8Nodes(*int8), 5);
  // Less than all layers lose, so that some of them must stay as they are.
  TuningSpec half = SpecOf("l2<=1");
  half.budget = ErrorBudget::Parse(absl::StrCat("l2<=", 0.7 * int8->chosen.value)).value();
  const auto tuned = Tune(&EngineOfTests(), path, made.examples, half);
  ASSERT_TRUE(tuned.ok()) << tuned.status();
  EXPECT_LE(tuned->chosen.value, half.budget.limit());
  EXPECT_LT(Int8Nodes(*tuned), 5);
  for (const TunedNode& node : tuned->nodes) {
    EXPECT_GE(node.error_alone, 0) << node.node;
    EXPECT_THAT(node.reason, HasSubstr("at an l2 of")) << node.node;
  }
}

// Examples that are held out, as none of those of the choice is.
TEST(TunerTest, AMissOnHeldOutExamplesHasASecondTry) {
  Examples made = MakeExamples(16);
  const std::string path = WriteResidualModel();
  const auto first = Tune(&EngineOfTests(), path, made.examples, SpecOf("l2<=1"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->first_held_out.has_value());
  ModelSignature signature;
  signature.inputs = {{"x", DataType::kF32, {-1, 8, 12, 12}}};
  const TuningSpec any = SpecOf("l2<=1");
  const auto set =
      tuning::ExampleSet::Create(signature, made.examples, any.hold_out, any.seed).value();
  for (int64_t held : set.held_out) {
    for (float& number : made.numbers[held]) number *= 4;  // beyond the ranges
  }
  TuningSpec spec = SpecOf("l2<=1");
  spec.budget = ErrorBudget::Parse(absl::StrCat("l2<=", 2 * first->chosen_l2)).value();
  const auto result = Tune(&EngineOfTests(), path, made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->first_held_out.has_value());
  EXPECT_GT(result->first_held_out->value, spec.budget.limit());
  EXPECT_LE(result->held_out.value, result->first_held_out->value);
  EXPECT_EQ(result->is_found(), result->held_out.value <= spec.budget.limit());
  EXPECT_EQ(result->model.empty(), !result->is_found());
}

TEST(TunerTest, AGoalThatNothingReachesTellsTheNearest) {
  const Examples made = MakeExamples(6);
  TuningSpec spec = SpecOf("l2<=1");
  spec.goal = 1e6;
  const auto result = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->reaches_goal);
  EXPECT_THAT(result->model + result->tuning, IsEmpty());
  EXPECT_EQ(Int8Nodes(*result), 0);
  EXPECT_GT(result->held_out.value, 0);
  EXPECT_GT(result->tuned_time, absl::ZeroDuration());
  spec.goal = 1.0;
  EXPECT_THAT(
      std::string(
          Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec).status().message()),
      HasSubstr("a goal of 1 times the exact model's speed: above 1"));
}

TEST(TunerTest, LabelsTellAccuracyAndChangedAnswersAreListed) {
  const Examples made = MakeExamples(12);
  const std::string path = WriteResidualModel();
  const auto exact = EngineOfTests().LoadModel(path).value();
  TuningSpec spec = SpecOf("l2<=1");
  for (const TuningExample& example : made.examples) {
    const auto outputs = exact->Run({example[0].tensor}, {}, {}).value();
    const auto* scores = reinterpret_cast<const float*>(outputs[0].bytes.data());
    spec.labels.push_back(std::max_element(scores, scores + 10) - scores);
  }
  spec.is_made_up = true;
  const auto result = Tune(&EngineOfTests(), path, made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->is_found() && result->accuracy && result->changed_share);
  EXPECT_EQ(result->accuracy->examples, 6);
  EXPECT_EQ(result->accuracy->exact_right, 6);
  EXPECT_EQ(result->accuracy->tuned_right, 6 - static_cast<int64_t>(result->changed.size()));
  EXPECT_DOUBLE_EQ(result->changed_share->value, static_cast<double>(result->changed.size()) / 6);
  EXPECT_THAT(result->tuning, HasSubstr("they were made up; accuracy 100.0 % exact, "));
  EXPECT_GT(result->exact_memory.held, 0);
  EXPECT_GT(result->tuned_memory.activations, 0);
  TuningSpec few = spec, unknown = spec;
  few.labels.pop_back();
  unknown.labels.assign(12, 10);
  EXPECT_THAT(std::string(Tune(&EngineOfTests(), path, made.examples, few).status().message()),
              HasSubstr("11 labels of 12 examples"));
  EXPECT_THAT(std::string(Tune(&EngineOfTests(), path, made.examples, unknown).status().message()),
              HasSubstr("is 10; the model has the classes 0 to 9"));
}

TEST(AnswersTest, TellWhatChangedAndWhatIsRight) {
  using tuning::OutputFloats;
  const std::vector<OutputFloats> exact = {
      {{1, 3}, {0.7f, 0.2f, 0.1f}}, {{1, 3}, {2, 1, 0}}, {{1, 3}, {0, 5, 5}}};
  std::vector<OutputFloats> other = {
      {{1, 3}, {0.4f, 0.5f, 0.1f}}, {{1, 3}, {2, 1, 0}}, {{1, 3}, {0, 5, std::nanf("")}}};
  const std::vector<int64_t> examples = {4, 7, 9};
  const std::vector<int64_t> labels = {0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  const auto changed = tuning::ChangedAnswers({examples, exact, other}, labels);
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].example, 4);
  EXPECT_EQ(changed[0].exact_class, 0);
  EXPECT_EQ(changed[0].tuned_class, 1);
  EXPECT_FLOAT_EQ(changed[0].exact_probability, 0.7f);
  EXPECT_FLOAT_EQ(changed[0].tuned_probability, 0.5f);
  EXPECT_EQ(changed[0].label, 1);
  EXPECT_EQ(changed[1].tuned_class, -1);                                       // NaN
  EXPECT_NEAR(changed[1].exact_probability, 1 / (2 + std::exp(-5.0)), 1e-12);  // of scores
  const Accuracy accuracy = tuning::AccuracyOf({examples, exact, other}, labels);
  EXPECT_EQ(accuracy.exact_right, 2);
  EXPECT_EQ(accuracy.tuned_right, 2);
  EXPECT_LT(accuracy.exact_interval.low, 2.0 / 3);
  EXPECT_TRUE(tuning::HaveClasses(exact));
  EXPECT_FALSE(tuning::HaveClasses({{{1, 3, 2}, {0, 0, 0, 0, 0, 0}}}));
}

TEST(ReasonsTest, SayWhatSpokeForAndAgainst) {
  TuningSpec spec = SpecOf("l2<=1");
  spec.may_be_bf16 = true;
  TunedNode node{.error_alone = 2e-2,
                 .bf16_alone = 1e-3,
                 .exact_time = absl::Microseconds(100),
                 .bf16_time = absl::Microseconds(60),
                 .int8_time = absl::Microseconds(35)};
  const auto text = [&](TunedPrecision precision) {
    node.precision = precision;
    return tuning::ReasonText(node, spec, true);
  };
  EXPECT_EQ(text(TunedPrecision::kInt8),
            "taken: int8 saves 65 us, at an l2 of 2.0e-02 alone; "
            "bf16 saves 40 us, at an l2 of 1.0e-03 alone");
  EXPECT_THAT(text(TunedPrecision::kBf16), HasSubstr("taken: bf16 saves 40 us"));
  EXPECT_THAT(text(TunedPrecision::kBf16),
              HasSubstr("int8 saves 65 us, at an l2 of 2.0e-02 alone, for which the budget or the "
                        "goal left no room"));
  node.int8_time = absl::Microseconds(70);
  EXPECT_THAT(text(TunedPrecision::kBf16), HasSubstr("int8 is not faster here: int8 saves 30 us"));
  node.int8_time = absl::Microseconds(104);
  node.bf16_alone = 0;
  EXPECT_EQ(text(TunedPrecision::kExact),
            "int8 is not faster here: int8 costs 4 us more, at an l2 of 2.0e-02 alone; bf16 "
            "changes nothing, as no row of it takes this layer here");
}

bool HasBf16() { return cpu::BestIsa().Includes(cpu::Isa::kAvx512Bf16); }

TEST(TunerTest, Bf16IsTakenWhereInt8LosesTooMuch) {
  if (!HasBf16()) GTEST_SKIP() << "no products of bf16 on this CPU";
  const Examples made = MakeExamples(8);
  TuningSpec spec = SpecOf("l2<=1e-2");
  spec.may_be_bf16 = true;
  spec.may_be_int8 = false;
  const auto result = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->keeps_budget) << result->held_out.value;
  int bf16 = 0;
  for (const TunedNode& node : result->nodes) {
    EXPECT_NE(node.precision, TunedPrecision::kInt8) << node.node;
    EXPECT_THAT(node.reason, HasSubstr("bf16")) << node.node;
    EXPECT_GE(node.bf16_alone, 0) << node.node;
    if (node.precision != TunedPrecision::kBf16) continue;
    EXPECT_GT(node.bf16_alone, 0) << node.node;  // else it is exact
    ++bf16;
  }
  EXPECT_GT(bf16, 0);
  EXPECT_GT(result->chosen.value, 0);
  // With both, the measured errors of each are there to choose by.
  spec.may_be_int8 = true;
  const auto both = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_TRUE(both->keeps_budget);
  EXPECT_LE(both->chosen.value, 1e-2);
  EXPECT_FALSE(both->curve.empty());
  EXPECT_THAT(both->nodes[1].reason, HasSubstr("; bf16"));
}

TEST(TunerTest, Bf16IsRefusedWithoutProductsOfIt) {
  const auto engine = Engine::Create({.max_isa = cpu::Isa::kBaseline, .threads = 1}).value();
  const Examples made = MakeExamples(2);
  TuningSpec spec = SpecOf("l2<=1");
  spec.may_be_bf16 = true;
  const auto result = Tune(engine.get(), WriteResidualModel(), made.examples, spec);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(result.status().message()), HasSubstr("this one has baseline"));
}

TEST(TunerTest, SaysTheNearestWhereNothingKeepsTheBudget) {
  const Examples made = MakeExamples(4);
  const auto result =
      Tune(&EngineOfTests(), WriteResidualModel(), made.examples, SpecOf("l2<=1e-9"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->keeps_budget);
  EXPECT_GT(result->chosen.value, 1e-9);
  EXPECT_EQ(Int8Nodes(*result), 0);
  const std::string path = ::testing::TempDir() + "/never.onnx";
  EXPECT_EQ(WriteTunedModel(*result, path).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(TunerTest, AStopEndsItWithWhatWasFound) {
  const Examples made = MakeExamples(6);
  std::atomic<bool> stop = false;
  TuningSpec spec = SpecOf("l2<=1");
  spec.stop = &stop;
  spec.progress = [&](const TuningProgress& progress) {
    if (progress.text.find("layer 2 of") == 0) stop = true;
  };
  const auto result = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->is_stopped);
  EXPECT_TRUE(result->keeps_budget);  // all layers by one method were measured by then
  EXPECT_EQ(Int8Nodes(*result), 5);
}

TEST(TunerTest, TheTimeEndsIt) {
  const Examples made = MakeExamples(4);
  TuningSpec spec = SpecOf("l2<=1");
  spec.time = absl::Nanoseconds(1);
  const auto result = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->is_out_of_time);
  EXPECT_EQ(result->tried, 1);
  EXPECT_TRUE(result->keeps_budget);
}

TEST(TunerTest, LeavesNoFilesOfTrials) {
  const std::string scratch = ::testing::TempDir() + "/scratch";
  std::filesystem::create_directory(scratch);
  const Examples made = MakeExamples(3);
  TuningSpec spec = SpecOf("l2<=1");
  spec.scratch = scratch;
  ASSERT_TRUE(Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec).ok());
  EXPECT_TRUE(std::filesystem::is_empty(scratch));
}

TEST(TunerTest, RefusesByName) {
  const std::string path = WriteResidualModel();
  const Examples made = MakeExamples(3);
  std::vector<TuningExample> unnamed = made.examples, shaped = made.examples;
  unnamed[1][0].name = "image";
  shaped[2][0].tensor.dims = {1, 8, 12, 24};
  std::vector<float> holed = made.numbers[1];
  holed[7] = std::nanf("");
  std::vector<TuningExample> nan = made.examples;
  nan[1][0].tensor = ViewOf(holed, kResidualInput);
  TuningSpec unknown = SpecOf("l2(z)<=1"), all_held = SpecOf("l2<=1"), nowhere = SpecOf("l2<=1");
  TuningSpec nothing = SpecOf("l2<=1");
  nothing.may_be_int8 = false;
  all_held.hold_out = 1;
  nowhere.scratch = "/no/such/folder";
  const struct {
    std::vector<TuningExample> examples;
    TuningSpec spec;
    const char* message;
  } kCases[] = {
      {{made.examples[0]}, SpecOf("l2<=1"), "1 example: at least 2 are needed"},
      {unnamed, SpecOf("l2<=1"),
       "example 1 must have input 'x' once; the model has the inputs 'x'"},
      {shaped, SpecOf("l2<=1"), "example 2: input 'x' is of shape [1,8,12,24]"},
      {nan, SpecOf("l2<=1"), "example 1: element 7 of input 'x' is not finite"},
      {made.examples, unknown, "the model has no output 'z'; it has 'y'"},
      {made.examples, all_held, "a share of 1 held out is not between 0 and 1"},
      {made.examples, nothing, "neither bf16 nor int8 is permitted"},
      {made.examples, nowhere, "can be made in '/no/such/folder'"},
  };
  for (const auto& test : kCases) {
    const auto result = Tune(&EngineOfTests(), path, test.examples, test.spec);
    ASSERT_FALSE(result.ok()) << test.message;
    EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument) << result.status();
    EXPECT_THAT(std::string(result.status().message()), HasSubstr(test.message));
  }
}

TEST(TunerTest, TheSeedDecidesWhatIsHeldOut) {
  const Examples made = MakeExamples(40);
  ModelSignature signature;
  signature.inputs = {{"x", DataType::kF32, {-1, 8, 12, 12}}};
  const auto one = tuning::ExampleSet::Create(signature, made.examples, 0.25, 1).value();
  const auto again = tuning::ExampleSet::Create(signature, made.examples, 0.25, 1).value();
  const auto other = tuning::ExampleSet::Create(signature, made.examples, 0.25, 2).value();
  EXPECT_EQ(one.held_out.size(), 10u);
  EXPECT_EQ(one.chosen.size(), 30u);
  EXPECT_EQ(one.held_out, again.held_out);
  EXPECT_NE(one.held_out, other.held_out);
}

TEST(LayerTimesTest, ShareOutChainsAndConversions) {
  std::vector<tuning::Layer> layers(2);
  layers[0].name = "a";
  layers[1].name = "b";
  layers[0].input = layers[1].input = "x";
  Explanation exact, int8;
  exact.steps = {{.node = "a + b", .time = absl::Microseconds(10)}};
  int8.steps = {{.node = "x_QuantizeLinear", .time = absl::Microseconds(2)},
                {.node = "a", .time = absl::Microseconds(3)},
                {.node = "b", .time = absl::Microseconds(6)}};
  layers[0].step = "a";
  layers[1].step = "b";
  Explanation bf16;
  bf16.steps = {{.node = "b", .time = absl::Microseconds(1)}};
  const auto times = tuning::TimesOf(layers, exact, &bf16, &int8);
  EXPECT_EQ(times[0].exact, absl::Microseconds(5));
  EXPECT_EQ(times[0].int8, absl::Microseconds(4));
  EXPECT_EQ(times[1].int8, absl::Microseconds(7));
  EXPECT_EQ(times[1].Of(TunedPrecision::kBf16), absl::Microseconds(1));
  EXPECT_EQ(tuning::TimesOf(layers, exact, nullptr, nullptr)[0].int8, absl::ZeroDuration());
}

std::string ReadDigits(const std::string& name) {
  std::ifstream file("deploy/models/digits/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The built-in model's own pictures.
Examples DigitExamples() {
  const std::string images = ReadDigits("heldout/images.u8");
  constexpr int64_t kPixels = 3 * 24 * 20;
  const auto count = static_cast<int64_t>(images.size()) / kPixels;
  Examples digits;
  digits.numbers.assign(count, std::vector<float>(kPixels));
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < kPixels; ++k)
      digits.numbers[i][k] =
          static_cast<float>(static_cast<uint8_t>(images[i * kPixels + k])) / 255.0f;
    digits.examples.push_back({{"image", ViewOf(digits.numbers[i], {1, 3, 24, 20})}});
  }
  return digits;
}

// The whole of a user's way, with the layers that save time here and with all layers.
TEST(TunerTest, DigitsKeepTheirAnswers) {
  const Examples digits = DigitExamples();
  ASSERT_EQ(digits.examples.size(), 360u);
  for (bool may_stay_exact : {true, false}) {
    TuningSpec spec = SpecOf("top1_changed(logits)<=1%");
    spec.may_stay_exact = may_stay_exact;
    const auto result =
        Tune(&EngineOfTests(), "deploy/models/digits/1/model.onnx", digits.examples, spec);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_TRUE(result->keeps_budget) << result->held_out.value;
    EXPECT_LE(result->held_out.value, 0.01);
    EXPECT_EQ(result->held_out.examples, 180);
    ASSERT_TRUE(result->held_out.interval.has_value());
    EXPECT_LE(result->held_out.interval->low, result->held_out.value);
    EXPECT_GE(result->held_out.interval->high, result->held_out.value);
    ASSERT_EQ(result->nodes.size(), 11u);
    if (!may_stay_exact) {
      EXPECT_EQ(Int8Nodes(*result), 11);
    }
    const auto tuned = LoadBytes(result->model);
    const size_t real =
        StepsOfFloats(*tuned, "convolution").size() + StepsOfFloats(*tuned, "inner_product").size();
    EXPECT_EQ(real + Int8Nodes(*result), 11u) << may_stay_exact;
  }
}

// No answer changes with all layers int8, but some would with errors of twice the size: too little
// to rely on, and all that was found when the time ended.
TEST(TunerTest, AtTheEndOfTheTimeTheMostProbableIsChecked) {
  const Examples digits = DigitExamples();
  TuningSpec spec = SpecOf("top1_changed(logits)<=0.5%");
  spec.time = absl::Nanoseconds(1);
  const auto result =
      Tune(&EngineOfTests(), "deploy/models/digits/1/model.onnx", digits.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->chosen.value, 0);
  EXPECT_TRUE(result->keeps_budget) << result->held_out.value;
  EXPECT_EQ(Int8Nodes(*result), 11);
}

// Whichever half of the pictures chooses, the other half finds the budget kept.
TEST(TunerTest, TheBudgetIsKeptWithTenSeeds) {
  const Examples digits = DigitExamples();
  for (uint64_t seed = 0; seed < 10; ++seed) {
    TuningSpec spec = SpecOf("top1_changed(logits)<=0.6%");  // one of 180
    spec.seed = seed;
    spec.time = absl::Seconds(1);  // what is begun is ended
    const auto result =
        Tune(&EngineOfTests(), "deploy/models/digits/1/model.onnx", digits.examples, spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->keeps_budget) << "seed " << seed << ": " << result->held_out.value;
    EXPECT_LE(result->chosen.value, 0.006);
  }
}

}  // namespace
}  // namespace tilewire::testing
