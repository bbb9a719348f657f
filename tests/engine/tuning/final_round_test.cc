// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/choice/final_round.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "engine/tuning/example_set.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_results.h"

namespace tilewire::testing {
namespace {

using tuning::BolderThan;
using tuning::FastestOf;

Finalist Entrant(const char* name, double us, double l2, bool is_sure = true) {
  return {.name = name, .time = absl::Microseconds(us), .l2 = l2, .is_sure = is_sure};
}

TEST(FinalRoundTest, TheFastestOfTheSureOnesIsTaken) {
  const std::vector<Finalist> finalists = {
      Entrant("exact", 113, 0), Entrant("layer by layer", 49, 3e-3), Entrant("all bf16", 66, 1e-3),
      Entrant("all int8", 42, 1e-2)};
  EXPECT_EQ(FastestOf(finalists), 3u);
  EXPECT_FALSE(BolderThan(finalists, 3).has_value());
}

// A network that conversions make slower than it was.
TEST(FinalRoundTest, NothingIsTakenThatIsSlowerThanTheExactModel) {
  EXPECT_EQ(FastestOf({Entrant("exact", 55, 0), Entrant("layer by layer", 108, 3e-3)}), 0u);
}

TEST(FinalRoundTest, OfThoseThatAreAsFastTheNearestIsTaken) {
  EXPECT_EQ(FastestOf({Entrant("exact", 100.9, 0), Entrant("all int8", 100, 1e-2)}), 0u);
  EXPECT_EQ(FastestOf({Entrant("exact", 101.1, 0), Entrant("all int8", 100, 1e-2)}), 1u);
}

TEST(FinalRoundTest, OneThatIsNotSureIsBolderIfItIsClearlyFaster) {
  std::vector<Finalist> finalists = {Entrant("exact", 113, 0), Entrant("layer by layer", 52, 3e-3),
                                     Entrant("all bf16", 51, 2e-2, false),
                                     Entrant("all int8", 42, 1e-2, false)};
  EXPECT_EQ(FastestOf(finalists), 1u);
  EXPECT_EQ(BolderThan(finalists, 1), 3u);
  finalists[3].time = absl::Microseconds(50);
  EXPECT_FALSE(BolderThan(finalists, 1).has_value());
  finalists[3].time = absl::Microseconds(42);
  finalists[3].is_sure = true;
  EXPECT_FALSE(BolderThan(finalists, 3).has_value());
}

// All that keep the budget are timed, and the one that is taken is as fast as each of them.
TEST(FinalRoundTest, TheLastWordIsThatOfTheWholeInTurns) {
  const Examples made = MakeExamples(8);
  const std::string path = WriteResidualModel();
  TuningSpec spec = SpecOf("l2<=1");
  spec.may_be_bf16 = HasBf16();
  const auto result = Tune(&EngineOfTests(), path, made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->is_found());
  const Finalist* chosen = ChosenOf(*result);
  ASSERT_NE(chosen, nullptr);
  for (const char* name : {"exact", "all int8"}) {
    const Finalist* one = FinalistOf(*result, name);
    ASSERT_NE(one, nullptr) << name;
    EXPECT_TRUE(one->is_sure) << name;
    EXPECT_LE(chosen->time, one->time * tuning::kAsFast) << name;
  }
  EXPECT_EQ(FinalistOf(*result, "exact")->error, 0);
  EXPECT_EQ(Int8Nodes(*result) == 5, chosen->name == "all int8");
  for (const TunedNode& node : result->nodes) {
    const bool is_uniform = chosen->name != tuning::kLayerByLayer;
    EXPECT_EQ(node.reason.starts_with(chosen->name + " won among whole models"), is_uniform)
        << node.reason;
  }
  // With a goal, or where nothing may stay exact, something else decides.
  spec.may_be_bf16 = spec.may_stay_exact = false;
  const auto int8 = Tune(&EngineOfTests(), path, made.examples, spec);
  ASSERT_TRUE(int8.ok()) << int8.status();
  EXPECT_TRUE(int8->finalists.empty());
  EXPECT_EQ(Int8Nodes(*int8), 5);
}

// All layers int8 keep the budget without a margin: what is not sure has to prove itself on the
// examples that are held out, or something surer is taken.
TEST(FinalRoundTest, ABolderAssignmentIsCheckedFirst) {
  const Examples made = MakeExamples(8);
  const std::string path = WriteResidualModel();
  const auto all = Tune(&EngineOfTests(), path, made.examples, SpecOf("l2<=1"));
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_NE(FinalistOf(*all, "all int8"), nullptr);
  TuningSpec spec = SpecOf("l2<=1");
  const double limit = 1.1 * FinalistOf(*all, "all int8")->l2;
  spec.budget = ErrorBudget::Parse(absl::StrCat("l2<=", limit)).value();
  const auto result = Tune(&EngineOfTests(), path, made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  if (!result->is_found()) return;  // the held-out examples lose more, whatever is chosen
  const Finalist *chosen = ChosenOf(*result), *int8 = FinalistOf(*result, "all int8");
  ASSERT_TRUE(chosen != nullptr && int8 != nullptr);
  EXPECT_FALSE(int8->is_sure);
  if (chosen != int8) {
    const bool is_slow = int8->time * tuning::kWorthACheck > chosen->time;
    EXPECT_TRUE(is_slow || result->bolder_held_out.has_value());
  }
  if (result->bolder_held_out) {
    EXPECT_GT(result->bolder_held_out->value, limit);
  }
}

// Two convolutions that integers make faster by far where the CPU has products of bytes.
const Dims kWideInput = {1, 64, 20, 20};
std::string WriteWideModel() {
  OnnxBuilder model(13);
  model.Input("x", {-1, 64, 20, 20}).Floats("w", {64, 64, 3, 3});
  model.Node("Conv", {"x", "w"}, {"first"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Relu", {"first"}, {"first_r"});
  model.Node("Conv", {"first_r", "w"}, {"y"}, {Ints("pads", {1, 1, 1, 1})}).Output("y");
  std::string path = ::testing::TempDir() + "/wide.onnx";
  WriteFile(path, model.Serialize());
  return path;
}

// Examples that are held out, as none of those of the choice is.
TEST(FinalRoundTest, AMissOnHeldOutExamplesHasASecondTry) {
  if (!cpu::BestIsa().Includes(cpu::Isa::kAvx512Vnni))
    GTEST_SKIP() << "integers may be no faster on this CPU, and exact layers miss nothing";
  Examples made;
  for (int i = 0; i < 16; ++i) made.numbers.push_back(MadeUp(kWideInput, i + 1));
  for (const std::vector<float>& numbers : made.numbers)
    made.examples.push_back({{"x", ViewOf(numbers, kWideInput)}});
  const std::string path = WriteWideModel();
  // On a busy machine the exact model, which misses nothing, may be the fastest for a moment.
  const auto tune = [&](const TuningSpec& spec) {
    auto result = Tune(&EngineOfTests(), path, made.examples, spec);
    for (int again = 0; again < 50 && result.ok() && IsExactTheFastest(*result); ++again)
      result = Tune(&EngineOfTests(), path, made.examples, spec);
    return result;
  };
  const auto first = tune(SpecOf("l2<=1"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_FALSE(first->first_held_out.has_value());
  ASSERT_EQ(Int8Nodes(*first), 2);
  ModelSignature signature;
  signature.inputs = {{"x", DataType::kF32, {-1, 64, 20, 20}}};
  const TuningSpec any = SpecOf("l2<=1");
  const auto set =
      tuning::ExampleSet::Create(signature, made.examples, any.hold_out, any.seed).value();
  for (int64_t held : set.held_out) {
    for (float& number : made.numbers[held]) number *= 4;  // beyond the ranges
  }
  TuningSpec spec = SpecOf("l2<=1");
  spec.budget = ErrorBudget::Parse(absl::StrCat("l2<=", 2 * first->chosen_l2)).value();
  const auto result = tune(spec);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->first_held_out.has_value())
      << result->held_out.value << " of " << spec.budget.limit() << ", " << Int8Nodes(*result);
  EXPECT_GT(result->first_held_out->value, spec.budget.limit());
  EXPECT_LE(result->held_out.value, result->first_held_out->value);
  EXPECT_EQ(result->is_found(), result->held_out.value <= spec.budget.limit());
  EXPECT_EQ(result->model.empty(), !result->is_found());
}

}  // namespace
}  // namespace tilewire::testing
