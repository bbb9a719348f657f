// SPDX-License-Identifier: Apache-2.0
#include "engine/error_budget.h"

#include <cmath>
#include <limits>
#include <string>

#include "engine/tuning/output_error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

using ::testing::HasSubstr;
using tuning::OutputError;

TEST(ErrorBudgetTest, IsReadAsItIsWritten) {
  const struct {
    const char* text;
    const char* again;
    double limit;
    const char* output;
  } kCases[] = {
      {"top1_changed<=0.5%", "top1_changed<=0.5%", 0.005, ""},
      {"accuracy_drop(logits)<=0.5%", "accuracy_drop(logits)<=0.5%", 0.005, "logits"},
      {"accuracy_drop<=0.5", "accuracy_drop<=50%", 0.5, ""},
      {"top1_changed<=0.02", "top1_changed<=2%", 0.02, ""},
      {"top1_changed<=100%", "top1_changed<=100%", 1, ""},
      {" l2 <= 1e-2 ", "l2<=0.01", 0.01, ""},
      {"l2(scores<)<=0", "l2(scores<)<=0", 0, "scores<"},
      {"psnr(/net/out)>=40", "psnr(/net/out)>=40", 40, "/net/out"},
  };
  for (const auto& test : kCases) {
    const auto budget = ErrorBudget::Parse(test.text);
    ASSERT_TRUE(budget.ok()) << test.text << ": " << budget.status();
    EXPECT_EQ(budget->ToString(), test.again);
    EXPECT_DOUBLE_EQ(budget->limit(), test.limit);
    EXPECT_EQ(budget->output(), test.output);
  }
}

TEST(ErrorBudgetTest, RefusesOthersByValueAndSaysWhatIsAllowed) {
  const struct {
    const char* text;
    const char* message;
  } kCases[] = {
      {"", "'' compares nothing by <= or >="},
      {"l2", "'l2' compares nothing by <= or >="},
      {"l2<1", "'l2<1' compares nothing by <= or >="},
      {"l3<=1", "'l3' is not a measure; a budget is top1_changed<=0.5%"},
      {"l2>=0.1", "'l2>=0.1': l2 is compared by <="},
      {"psnr<=40", "'psnr<=40': psnr is compared by >="},
      {"l2<=", "'' is not a number"},
      {"l2<=1%", "'1%' is not a number"},
      {"l2<=nan", "'nan' is out of range: the limit of l2 is from 0 to 1"},
      {"l2<=-1e-3", "'-1e-3' is out of range"},
      {"top1_changed<=101%", "'101%' is out of range: the limit of top1_changed is from 0 to 1 or"},
      {"top1_changed<=1", "'1' is all answers, which any model keeps: 1% is a hundredth"},
      {"accuracy_drop<=1.0", "'1.0' is all answers"},
      {"accuracy_drop>=1%", "accuracy_drop is compared by <="},
      {"accuracy_drop<=-1%", "'-1%' is out of range: the limit of accuracy_drop is from 0 to 1 or"},
      {"l2()<=1", "'l2()<=1' names no output in its parentheses"},
  };
  for (const auto& test : kCases) {
    const auto budget = ErrorBudget::Parse(test.text);
    ASSERT_FALSE(budget.ok()) << test.text;
    EXPECT_EQ(budget.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(budget.status().message()), HasSubstr(test.message));
  }
}

TEST(ErrorBudgetTest, ComparesInTheDirectionOfTheMeasure) {
  const ErrorBudget l2 = ErrorBudget::Parse("l2<=0.01").value();
  EXPECT_TRUE(l2.Allows(0.01));
  EXPECT_FALSE(l2.Allows(0.011));
  EXPECT_FALSE(l2.Allows(std::nan("")));
  EXPECT_TRUE(l2.IsWorse(0.2, 0.1));
  EXPECT_DOUBLE_EQ(l2.Part(0.5).limit(), 0.005);
  const ErrorBudget psnr = ErrorBudget::Parse("psnr>=40").value();
  EXPECT_TRUE(psnr.Allows(std::numeric_limits<double>::infinity()));
  EXPECT_FALSE(psnr.Allows(39.9));
  EXPECT_TRUE(psnr.IsWorse(30, 31));
  EXPECT_NEAR(psnr.Part(0.1).limit(), 60, 1e-9);
}

// Values of Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
TEST(ErrorBudgetTest, IntervalsAreWilsons) {
  const struct {
    int64_t counted, total;
    double low, high;
  } kCases[] = {{81, 263, 0.2553, 0.3662},
                {15, 148, 0.0624, 0.1605},
                {0, 20, 0, 0.1611},
                {1, 29, 0.0061, 0.1718}};
  for (const auto& test : kCases) {
    const ShareInterval interval = WilsonInterval(test.counted, test.total);
    EXPECT_NEAR(interval.low, test.low, 5e-5) << test.counted << " of " << test.total;
    EXPECT_NEAR(interval.high, test.high, 5e-5) << test.counted << " of " << test.total;
  }
}

TEST(OutputErrorTest, MeasuresAreTheirFormulas) {
  OutputError error;
  error.Add({{1, 3}, {1, 2, 4}}, {{1, 3}, {1, 2, 3}});
  error.Add({{1, 3}, {0, 2, 0}}, {{1, 3}, {2, 2, 0}});  // of equals the first is the largest
  EXPECT_DOUBLE_EQ(error.Of(ErrorMeasure::kL2).value, std::sqrt(5.0 / 25));
  const MeasuredError changed = error.Of(ErrorMeasure::kTop1Changed);
  EXPECT_DOUBLE_EQ(changed.value, 0.5);
  EXPECT_EQ(changed.examples, 2);
  ASSERT_TRUE(changed.interval.has_value());
  EXPECT_DOUBLE_EQ(error.Of(ErrorMeasure::kPsnr).value, 10 * std::log10(16 / (5.0 / 6)));
}

// Ten answers of 100 became wrong and four right: (10.5 - 4.5) / 102, and 1.96 deviations of it.
TEST(ErrorBudgetTest, IntervalsOfADropAreThoseOfPairs) {
  const ShareInterval interval = DropInterval(10, 4, 100);
  EXPECT_NEAR(interval.low, -0.014716, 1e-5);
  EXPECT_NEAR(interval.high, 0.132364, 1e-5);
  EXPECT_GT(DropInterval(0, 0, 20).high, 0);
  EXPECT_EQ(DropInterval(1, 0, 1).high, 1);
}

TEST(OutputErrorTest, ADropCountsWhatBecameWrongLessWhatBecameRight) {
  const tuning::OutputFloats first = {{1, 3}, {3, 1, 0}}, second = {{1, 3}, {1, 3, 0}};
  OutputError error;
  error.Add(first, second, 0);   // became wrong
  error.Add(first, second, 0);   // and another
  error.Add(first, second, 1);   // became right
  error.Add(first, second, 2);   // was wrong and is
  error.Add(second, second, 1);  // right as before
  EXPECT_DOUBLE_EQ(error.Of(ErrorMeasure::kTop1Changed).value, 0.8);
  const MeasuredError drop = error.Of(ErrorMeasure::kAccuracyDrop);
  EXPECT_DOUBLE_EQ(drop.value, 0.2);
  EXPECT_TRUE(drop.interval.has_value());
  EXPECT_EQ(error.CountsOf(ErrorMeasure::kAccuracyDrop).worse, 2);
  EXPECT_EQ(error.CountsOf(ErrorMeasure::kAccuracyDrop).better, 1);
  EXPECT_EQ(error.CountsOf(ErrorMeasure::kTop1Changed).worse, 4);
  error.Add(first, {{1, 3}, {std::nanf(""), 1, 0}}, 0);  // NaN is not an answer
  EXPECT_EQ(error.CountsOf(ErrorMeasure::kAccuracyDrop).worse, 3);
  EXPECT_EQ(ErrorText(ErrorMeasure::kAccuracyDrop, -0.0025), "-0.25 %");
}

TEST(OutputErrorTest, PlacesOfOneExampleGiveNoInterval) {
  OutputError error;
  error.Add({{1, 2, 2}, {1, 5, 2, 4}}, {{1, 2, 2}, {1, 3, 2, 4}});  // places [1,2] and [5,4]
  const MeasuredError changed = error.Of(ErrorMeasure::kTop1Changed);
  EXPECT_DOUBLE_EQ(changed.value, 0.5);
  EXPECT_FALSE(changed.interval.has_value());
}

TEST(OutputErrorTest, NanIsAsFarAsCanBe) {
  OutputError error;
  error.Add({{1, 2}, {1, 2}}, {{1, 2}, {1, std::nanf("")}});
  EXPECT_FALSE(ErrorBudget::Parse("l2<=1").value().Allows(error.Of(ErrorMeasure::kL2).value));
  EXPECT_FALSE(ErrorBudget::Parse("psnr>=0").value().Allows(error.Of(ErrorMeasure::kPsnr).value));
  EXPECT_EQ(error.Of(ErrorMeasure::kTop1Changed).value, 1);
}

TEST(OutputErrorTest, EqualOutputsHaveNoError) {
  OutputError error;
  error.Add({{1, 2}, {0, 0}}, {{1, 2}, {0, 0}});
  EXPECT_EQ(error.Of(ErrorMeasure::kL2).value, 0);
  EXPECT_TRUE(std::isinf(error.Of(ErrorMeasure::kPsnr).value));
}

}  // namespace
}  // namespace tilewire::testing
