// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/elements/quantization_range.h"

#include <limits>

#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

TEST(QuantizationRangeTest, ZeroPointsAreBytesWhateverTheNumbersWere) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const struct {
    float given;
    int expected;
  } kCases[] = {
      {0, 0},     {117, 117},       {255, 255},      {-3, 0},
      {300, 255}, {kInfinity, 255}, {-kInfinity, 0}, {std::numeric_limits<float>::quiet_NaN(), 0}};
  for (const auto& [given, expected] : kCases) {
    const float range[] = {0.5f, given};
    EXPECT_EQ(ZeroPointOf(range), expected) << given;
  }
}

}  // namespace
}  // namespace tilewire::testing
