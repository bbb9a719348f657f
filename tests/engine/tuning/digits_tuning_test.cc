// SPDX-License-Identifier: Apache-2.0
//
// The built-in model, tuned with its own pictures.
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "engine/tuner.h"
#include "gtest/gtest.h"
#include "tests/engine/tuning/tuned_results.h"

namespace tilewire::testing {
namespace {

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
  const TuningSpec spec = SpecOf("top1_changed(logits)<=0.5%");
  const auto result =
      TuneUntilTheTimePasses("deploy/models/digits/1/model.onnx", digits.examples, spec);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->chosen.value, 0);
  EXPECT_TRUE(result->keeps_budget) << result->held_out.value;
  ASSERT_NE(FinalistOf(*result, "all int8"), nullptr);
  EXPECT_TRUE(FinalistOf(*result, "all int8")->is_sure);
  EXPECT_EQ(Int8Nodes(*result), IsExactTheFastest(*result) ? 0 : 11);
}

// Whichever half of the pictures chooses, the other half finds the budget kept.
TEST(TunerTest, TheBudgetIsKeptWithTenSeeds) {
  const Examples digits = DigitExamples();
  for (uint64_t seed = 0; seed < 10; ++seed) {
    TuningSpec spec = SpecOf("top1_changed(logits)<=0.6%");  // one of 180
    spec.seed = seed;
    spec.time = absl::Seconds(2);
    const auto result = TuneInTime("deploy/models/digits/1/model.onnx", digits.examples, spec);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_TRUE(result->keeps_budget) << "seed " << seed << ": " << result->held_out.value;
    EXPECT_LE(result->chosen.value, 0.006);
  }
}

}  // namespace
}  // namespace tilewire::testing
