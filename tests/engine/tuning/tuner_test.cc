// SPDX-License-Identifier: Apache-2.0
#include "engine/tuner.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/layer_times.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_results.h"

namespace tilewire::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

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
  EXPECT_EQ(Int8Nodes(*result) == 0, IsExactTheFastest(*result));
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
  EXPECT_EQ(bf16 == 0, IsExactTheFastest(*result));
  EXPECT_EQ(result->chosen.value == 0, IsExactTheFastest(*result));
  // With both, the measured errors of each are there to choose by.
  spec.may_be_int8 = true;
  const auto both = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  ASSERT_TRUE(both.ok()) << both.status();
  ASSERT_TRUE(both->keeps_budget);
  EXPECT_LE(both->chosen.value, 1e-2);
  EXPECT_FALSE(both->curve.empty());
  EXPECT_THAT(both->nodes[1].reason, HasSubstr("bf16"));
  EXPECT_NE(FinalistOf(*both, "all bf16"), nullptr);
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
  EXPECT_NE(FinalistOf(*result, "all int8"), nullptr);
  EXPECT_EQ(Int8Nodes(*result), IsExactTheFastest(*result) ? 0 : 5);
}

TEST(TunerTest, TheTimeEndsIt) {
  const Examples made = MakeExamples(4);
  const auto result = TuneUntilTheTimePasses(WriteResidualModel(), made.examples, SpecOf("l2<=1"));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->is_out_of_time);
  EXPECT_EQ(result->tried, 1);
  EXPECT_TRUE(result->keeps_budget);
}

TEST(TunerTest, LessThanASecondCountsAsOne) {
  const Examples made = MakeExamples(4);
  TuningSpec spec = SpecOf("l2<=1");
  spec.time = absl::Milliseconds(1);
  const absl::Time start = absl::Now();
  const auto result = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  if (!result.ok()) {  // a slow machine may need more than a second
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded) << result.status();
    EXPECT_THAT(std::string(result.status().message()), Not(HasSubstr(" need 1s at least")));
    return;
  }
  // Or most of it for one trial and the check.
  EXPECT_TRUE(!result->is_out_of_time || absl::Now() - start > absl::Milliseconds(400));
  EXPECT_TRUE(result->keeps_budget);
}

// Where all of the time has passed before the first run, as with a slow load, it is refused.
TEST(TunerTest, LoadingIsPartOfTheTime) {
  const Examples made = MakeExamples(4);
  TuningSpec spec = SpecOf("l2<=1");
  spec.time = absl::Milliseconds(1100);
  spec.progress = [](const TuningProgress& progress) {
    if (progress.text == "the time of a run") absl::SleepFor(absl::Milliseconds(1100));
  };
  const auto result = Tune(&EngineOfTests(), WriteResidualModel(), made.examples, spec);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded) << result.status();
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("a time of 1.1s is not enough"),
                    HasSubstr("and 2 to check with need "), HasSubstr("s at least")));
}

// A model of which a single run takes much of a second.
std::string WriteSlowModel() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 64, 256, 256}).Floats("w", {64, 64, 3, 3});
  model.Node("Conv", {"x", "w"}, {"first"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Conv", {"first", "w"}, {"second"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Conv", {"second", "w"}, {"y"}, {Ints("pads", {1, 1, 1, 1})}).Output("y");
  std::string path = ::testing::TempDir() + "/slow.onnx";
  WriteFile(path, model.Serialize());
  return path;
}

TEST(TunerTest, ATimeThatIsNotEnoughForAFewExamplesIsRefused) {
  const Dims dims = {1, 64, 256, 256};
  const std::vector<float> numbers = MadeUp(dims);
  const std::vector<TuningExample> examples(100, {{"x", ViewOf(numbers, dims)}});
  TuningSpec spec = SpecOf("l2<=1");
  spec.time = absl::Milliseconds(10);
  const auto result = Tune(&EngineOfTests(), WriteSlowModel(), examples, spec);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded) << result.status();
  EXPECT_THAT(std::string(result.status().message()),
              AllOf(HasSubstr("a time of 10ms is not enough: a run takes "),
                    HasSubstr("16 examples to choose by and 16 to check with need "),
                    HasSubstr(" at least, and all 50 and 50 ")));
}

// More runs of each example than a second has room for, on any machine.
TEST(TunerTest, ExamplesThatTheTimeHasNoRoomForAreLeftOut) {
  const int count = 60000;
  const Examples made = MakeExamples(1);
  const std::vector<TuningExample> examples(count, made.examples[0]);
  TuningSpec spec = SpecOf("l2<=1");
  spec.time = absl::Seconds(1);
  const auto result = TuneInTime(WriteResidualModel(), examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->keeps_budget);
  EXPECT_GT(result->left_out, 0);
  EXPECT_EQ(result->left_out + result->chosen.examples + result->held_out.examples, count);
  EXPECT_NEAR(static_cast<double>(result->chosen.examples),
              static_cast<double>(result->held_out.examples), 1.5);
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

TEST(ExampleSetTest, LeavesAFewEvenlyAmongAll) {
  tuning::ExampleSet set{.chosen = {1, 3, 4, 7, 9, 10}, .held_out = {0, 2, 5, 6, 8}};
  set.KeepOnly(3, 1);
  EXPECT_EQ(set.chosen, (std::vector<int64_t>{1, 4, 9}));
  EXPECT_EQ(set.held_out, (std::vector<int64_t>{0}));
  set.KeepOnly(3, 1);
  EXPECT_EQ(set.chosen, (std::vector<int64_t>{1, 4, 9}));
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

TEST(LayerTimesTest, AHiccupOfOneSeriesDoesNotCount) {
  Explanation least;
  tuning::TakeLeast({.steps = {{.node = "a", .time = absl::Microseconds(10)},
                               {.node = "b", .time = absl::Microseconds(900)}},
                     .run = absl::Microseconds(910)},
                    &least);
  tuning::TakeLeast({.steps = {{.node = "a", .time = absl::Microseconds(12)},
                               {.node = "b", .time = absl::Microseconds(5)}},
                     .run = absl::Microseconds(17)},
                    &least);
  EXPECT_EQ(least.steps[0].time, absl::Microseconds(10));
  EXPECT_EQ(least.steps[1].time, absl::Microseconds(5));
  EXPECT_EQ(least.run, absl::Microseconds(17));
}

}  // namespace
}  // namespace tilewire::testing
