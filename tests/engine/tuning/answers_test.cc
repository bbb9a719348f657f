// SPDX-License-Identifier: Apache-2.0
//
// Labels, answers that changed, and the reasons of a report.
#include "engine/tuning/report/answers.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/tuning/report/reasons.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_results.h"

namespace tilewire::testing {
namespace {

using ::testing::HasSubstr;

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
    return tuning::ReasonText(node, spec, true, "");
  };
  EXPECT_EQ(text(TunedPrecision::kInt8),
            "taken: int8 saves 65 us, at an l2 of 2.0e-02 alone; "
            "bf16 saves 40 us, at an l2 of 1.0e-03 alone");
  EXPECT_THAT(text(TunedPrecision::kBf16), HasSubstr("taken: bf16 saves 40 us"));
  EXPECT_THAT(text(TunedPrecision::kBf16),
              HasSubstr("int8 saves 65 us, at an l2 of 2.0e-02 alone, for which the budget, the "
                        "goal or the time of the whole left no room"));
  node.int8_time = absl::Microseconds(70);
  EXPECT_THAT(text(TunedPrecision::kBf16), HasSubstr("int8 is not faster here: int8 saves 30 us"));
  node.int8_time = absl::Microseconds(104);
  node.bf16_alone = 0;
  EXPECT_EQ(text(TunedPrecision::kExact),
            "int8 is not faster here: int8 costs 4 us more, at an l2 of 2.0e-02 alone; bf16 "
            "changes nothing, as no row of it takes this layer here");
}

// No layer decided by itself: the reason must not say so.
TEST(ReasonsTest, SayThatOnePrecisionThroughoutWon) {
  TuningSpec spec = SpecOf("l2<=1");
  spec.may_be_bf16 = true;
  TunedNode node{.precision = TunedPrecision::kExact,
                 .error_alone = 2e-2,
                 .bf16_alone = 1e-3,
                 .exact_time = absl::Microseconds(100),
                 .bf16_time = absl::Microseconds(60),
                 .int8_time = absl::Microseconds(35)};
  std::vector<Finalist> finalists = {{.name = "exact"}, {.name = "layer by layer"}};
  EXPECT_EQ(tuning::UniformWinner(finalists), "");
  finalists[1].is_chosen = true;
  EXPECT_EQ(tuning::UniformWinner(finalists), "");
  finalists[1].is_chosen = false;
  finalists[0].is_chosen = true;
  EXPECT_EQ(tuning::UniformWinner(finalists), "exact");
  EXPECT_EQ(tuning::ReasonText(node, spec, true, "exact"),
            "exact won among whole models in turns, whatever a layer gains by itself; int8 saves "
            "65 us, at an l2 of 2.0e-02 alone; bf16 saves 40 us, at an l2 of 1.0e-03 alone");
  node.precision = TunedPrecision::kBf16;
  EXPECT_THAT(tuning::ReasonText(node, spec, true, "all bf16"),
              HasSubstr("all bf16 won among whole models in turns, whatever"));
}

TEST(TunerTest, AccuracyIsKeptByItsLabels) {
  const Examples made = MakeExamples(12);
  const std::string path = WriteResidualModel();
  TuningSpec spec = SpecOf("accuracy_drop<=50%");
  const auto unknown = Tune(&EngineOfTests(), path, made.examples, spec);
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.status().message()),
              HasSubstr("accuracy_drop needs the right class of each example"));
  for (int i = 0; i < 12; ++i) spec.labels.push_back(i % 10);
  spec.may_stay_exact = false;
  const auto result = Tune(&EngineOfTests(), path, made.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_TRUE(result->accuracy.has_value());
  EXPECT_DOUBLE_EQ(
      result->held_out.value,
      static_cast<double>(result->accuracy->exact_right - result->accuracy->tuned_right) / 6);
  EXPECT_EQ(result->keeps_budget, result->held_out.value <= 0.5 && result->chosen.value <= 0.5);
  ASSERT_TRUE(result->held_out.interval.has_value());
}

}  // namespace
}  // namespace tilewire::testing
