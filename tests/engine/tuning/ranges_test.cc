// SPDX-License-Identifier: Apache-2.0
//
// Ranges of tensors, and integers of weights and biases.
#include <cmath>
#include <limits>
#include <vector>

#include "engine/tuning/byte_weights.h"
#include "engine/tuning/range_histogram.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

using network::QuantizationParams;
using tuning::ByteParams;
using tuning::Range;
using tuning::RangeHistogram;
using tuning::RangeMethod;

// Numbers of a bell: sums of 12 uniform ones.
std::vector<float> Bell(int64_t count) {
  std::vector<float> numbers;
  uint32_t state = 7;
  for (int64_t i = 0; i < count; ++i) {
    float sum = -6;
    for (int k = 0; k < 12; ++k) {
      state = state * 1664525u + 1013904223u;
      sum += static_cast<float>(state >> 8) / 16777216.0f;
    }
    numbers.push_back(sum);
  }
  return numbers;
}

// The sum of the squares of what integers of the range lose.
double SquaresLost(const std::vector<float>& numbers, const Range& range) {
  const QuantizationParams params = ByteParams(range);
  double sum = 0;
  for (float number : numbers) {
    const float integer = network::QuantizeElement(number, params, DataType::kU8);
    const double lost = network::DequantizeElement(integer, params) - number;
    sum += lost * lost;
  }
  return sum;
}

TEST(RangeHistogramTest, ExtremesAreThoseOfAllThatWasAdded) {
  RangeHistogram histogram;
  histogram.Add({0.5f, -0.25f});
  histogram.Add({1000.0f});  // far outside the bins so far
  histogram.Add({-3e38f, 3e38f});
  const Range range = histogram.Find(RangeMethod::kExtremes);
  EXPECT_EQ(range.low, -3e38f);
  EXPECT_EQ(range.high, 3e38f);
}

TEST(RangeHistogramTest, EachRangeHoldsZero) {
  for (const std::vector<float>& numbers : {std::vector<float>{5, 6},
                                            {-5, -6},
                                            {},
                                            {0, 0},
                                            {1e-38f},
                                            {std::numeric_limits<float>::denorm_min()}}) {
    RangeHistogram histogram;
    histogram.Add(numbers);
    for (RangeMethod method : tuning::kRangeMethods) {
      const Range range = histogram.Find(method);
      EXPECT_LE(range.low, 0) << NameOf(method);
      EXPECT_GE(range.high, 0) << NameOf(method);
      const QuantizationParams params = ByteParams(range);
      EXPECT_TRUE(network::IsOrdinary(params.scale)) << NameOf(method);
      EXPECT_TRUE(network::HoldsZeroPoint(DataType::kU8, params)) << NameOf(method);
    }
  }
}

TEST(RangeHistogramTest, PercentileCutsWhatIsRare) {
  std::vector<float> numbers = Bell(100000);
  numbers.push_back(500);
  RangeHistogram histogram;
  histogram.Add(numbers);
  const Range range = histogram.Find(RangeMethod::kPercentile);
  EXPECT_LT(range.high, 5);  // 4.2 deviations stand for 0.01 %
  EXPECT_GT(range.high, 2);
  EXPECT_EQ(histogram.Find(RangeMethod::kExtremes).high, 500);
}

TEST(RangeHistogramTest, SquaresLoseLessThanBothOthers) {
  std::vector<float> numbers = Bell(100000);
  numbers.push_back(40);
  RangeHistogram histogram;
  histogram.Add(numbers);
  const double lost = SquaresLost(numbers, histogram.Find(RangeMethod::kSquares));
  // The best range ends at 35 by its formula: a little is cut off, and the steps are shorter.
  EXPECT_LT(lost, 0.9 * SquaresLost(numbers, histogram.Find(RangeMethod::kExtremes)));
  EXPECT_LT(lost, 0.2 * SquaresLost(numbers, histogram.Find(RangeMethod::kPercentile)));
}

TEST(RangeHistogramTest, ZerosDoNotWeigh) {
  RangeHistogram histogram;
  histogram.Add(std::vector<float>(1000000, 0.0f));
  histogram.Add({1, 2, 3, 4});
  EXPECT_EQ(histogram.Find(RangeMethod::kPercentile).high, 4);
}

TEST(ByteWeightsTest, AreRoundedByOutput) {
  // Two outputs along dimension 0, then the same along dimension 1.
  const std::vector<float> rows = {1, -2, 0.5f, 10, 0, -5};
  const auto by_row = tuning::ToBytes(rows, {2, 3}, 0);
  EXPECT_EQ(by_row.elements, (std::vector<int8_t>{64, -127, 32, 127, 0, -64}));
  EXPECT_EQ(by_row.scale, (std::vector<float>{2.0f / 127, 10.0f / 127}));
  const std::vector<float> columns = {1, 10, -2, 0, 0.5f, -5};
  const auto by_column = tuning::ToBytes(columns, {3, 2}, 1);
  EXPECT_EQ(by_column.elements, (std::vector<int8_t>{64, 127, -127, 0, 32, -64}));
  EXPECT_EQ(by_column.scale, by_row.scale);
}

TEST(ByteWeightsTest, SmallOnesKeepToTheirBound) {
  const auto bytes = tuning::ToBytes({1, -2, 0.5f, 10, 0, -5}, {2, 3}, 0, tuning::kLargestPaired);
  EXPECT_EQ(bytes.elements, (std::vector<int8_t>{32, -64, 16, 64, 0, -32}));
  EXPECT_EQ(bytes.scale, (std::vector<float>{2.0f / 64, 10.0f / 64}));
}

TEST(ByteWeightsTest, OutputsOfZerosHaveAScale) {
  const auto bytes = tuning::ToBytes({0, 0}, {1, 2}, 0);
  EXPECT_EQ(bytes.scale[0], 1);
  EXPECT_EQ(bytes.elements, (std::vector<int8_t>{0, 0}));
}

TEST(ByteWeightsTest, BiasesThatDoNotFitStayReal) {
  const std::vector<float> scale = {0.5f, 1};
  const auto fitting = tuning::ToIntegers({3, -7}, 0.25f, scale);
  ASSERT_TRUE(fitting.has_value());
  EXPECT_EQ(*fitting, (std::vector<int32_t>{24, -28}));
  EXPECT_FALSE(tuning::ToIntegers({3e9f, 0}, 0.25f, scale).has_value());
  EXPECT_FALSE(tuning::ToIntegers({std::nanf(""), 0}, 0.25f, scale).has_value());
}

}  // namespace
}  // namespace tilewire::testing
