// SPDX-License-Identifier: Apache-2.0
//
// Numbers of 2 to 8 bits: what each code stands for, and which is the nearest.
#include "engine/memory/small_type.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

constexpr SmallType kFloats[] = {SmallType::kF4E2M1, SmallType::kF8E4M3Fn, SmallType::kF8E4M3Fnuz,
                                 SmallType::kF8E5M2, SmallType::kF8E5M2Fnuz};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The first code is 0, each next one is the nearest larger number: by counting, without formulas.
TEST(SmallTypeTest, CodesCountUpFromZero) {
  for (const SmallType type : kFloats) {
    const SmallFloat& kind = SmallFloatOf(type);
    const int per_power = 1 << (kind.significant_bits - 1);
    float step = kind.least_normal / static_cast<float>(per_power), number = 0;
    int codes = 0;
    for (; number <= kind.largest; ++codes) {
      EXPECT_EQ(SmallNumber(type, codes), number) << SmallTypeName(type) << " " << codes;
      number += step;
      if (codes >= 2 * per_power - 1 && (codes + 1) % per_power == 0) step *= 2;
    }
    const int half = 1 << (BitsOf(type) - 1);
    const int no_numbers = type == SmallType::kF8E4M3Fn ? 1 : type == SmallType::kF8E5M2 ? 4 : 0;
    EXPECT_EQ(codes, half - no_numbers) << SmallTypeName(type);
    for (int code = 1; code < codes; ++code)
      EXPECT_EQ(SmallNumber(type, half + code), -SmallNumber(type, code)) << SmallTypeName(type);
  }
}

TEST(SmallTypeTest, CodesThatAreNoNumbers) {
  for (const int sign : {0, 0x80}) {
    EXPECT_TRUE(std::isnan(SmallNumber(SmallType::kF8E4M3Fn, sign | 0x7F)));
    EXPECT_EQ(SmallNumber(SmallType::kF8E5M2, sign | 0x7C), sign == 0 ? kInfinity : -kInfinity);
    for (const int code : {0x7D, 0x7E, 0x7F})
      EXPECT_TRUE(std::isnan(SmallNumber(SmallType::kF8E5M2, sign | code)));
  }
  EXPECT_TRUE(std::isnan(SmallNumber(SmallType::kF8E4M3Fnuz, 0x80)));
  EXPECT_TRUE(std::isnan(SmallNumber(SmallType::kF8E5M2Fnuz, 0x80)));
  EXPECT_TRUE(std::signbit(SmallNumber(SmallType::kF8E4M3Fn, 0x80)));
  EXPECT_TRUE(std::isnan(SmallNumber(SmallType::kF8E8M0, 255)));
  EXPECT_EQ(SmallNumber(SmallType::kF8E8M0, 127), 1);
  EXPECT_EQ(SmallNumber(SmallType::kF8E8M0, 0), 0x1p-127f);
}

TEST(SmallTypeTest, IntegersHaveASignInTheHighestBit) {
  const struct {
    SmallType type;
    std::vector<int64_t> numbers;  // of the codes from 0 on
  } cases[] = {{SmallType::kU2, {0, 1, 2, 3}},
               {SmallType::kS2, {0, 1, -2, -1}},
               {SmallType::kU4, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}},
               {SmallType::kS4, {0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1}}};
  for (const auto& one : cases) {
    const auto count = static_cast<int64_t>(one.numbers.size());
    for (int64_t i = -3 * count; i < 3 * count; ++i)
      EXPECT_EQ(LowestBits(one.type, i), one.numbers[(i + 3 * count) % count]) << i;
    EXPECT_EQ(LeastOf(one.type), *std::min_element(one.numbers.begin(), one.numbers.end()));
    EXPECT_EQ(LargestOf(one.type), *std::max_element(one.numbers.begin(), one.numbers.end()));
  }
}

// Every code is its own nearest number; halfway between two, the even code is the nearest; a bit
// beside that the nearer one is.
TEST(SmallTypeTest, TheNearestNumberIsThatOfTheEvenCodeHalfWay) {
  for (const SmallType type : kFloats) {
    const float largest = SmallFloatOf(type).largest;
    for (int code = 0; SmallNumber(type, code) < largest; ++code) {
      const float low = SmallNumber(type, code), high = SmallNumber(type, code + 1);
      const float half = low + (high - low) / 2;
      for (const bool saturates : {false, true}) {
        for (const float sign : {1.0f, -1.0f}) {
          const auto nearest = [&](float number) {
            return NearestSmall(type, sign * number, saturates);
          };
          EXPECT_EQ(nearest(low), sign * low) << SmallTypeName(type) << " " << code;
          EXPECT_EQ(nearest(high), sign * high);
          EXPECT_EQ(nearest(half), sign * (code % 2 == 0 ? low : high)) << half;
          EXPECT_EQ(nearest(std::nextafter(half, 0.0f)), sign * low) << half;
          EXPECT_EQ(nearest(std::nextafter(half, largest)), sign * high) << half;
        }
      }
    }
  }
}

TEST(SmallTypeTest, WhatIsTooLargeSaturatesOrIsBeyond) {
  const struct {
    SmallType type;
    float most;  // what still becomes the largest number
  } cases[] = {{SmallType::kF8E4M3Fn, 464},
               {SmallType::kF8E4M3Fnuz, std::nextafter(248.0f, 0.0f)},
               {SmallType::kF8E5M2, std::nextafter(61440.0f, 0.0f)},
               {SmallType::kF8E5M2Fnuz, std::nextafter(61440.0f, 0.0f)}};
  for (const auto& [type, most] : cases) {
    const float largest = SmallFloatOf(type).largest;
    EXPECT_EQ(NearestSmall(type, most, /*saturates=*/false), largest) << SmallTypeName(type);
    for (const float number : {std::nextafter(most, kInfinity), 1e30f, kInfinity}) {
      EXPECT_EQ(NearestSmall(type, number, true), largest);
      EXPECT_EQ(NearestSmall(type, -number, true), -largest);
      const float beyond = NearestSmall(type, -number, false);
      if (type == SmallType::kF8E5M2) {
        EXPECT_EQ(beyond, -kInfinity);
      } else {
        EXPECT_TRUE(std::isnan(beyond)) << SmallTypeName(type) << " " << number;
      }
    }
    EXPECT_TRUE(std::isnan(NearestSmall(type, NAN, true)));
    EXPECT_EQ(std::signbit(NearestSmall(type, -1e-30f, true)),
              type == SmallType::kF8E4M3Fn || type == SmallType::kF8E5M2);
  }
  for (const bool saturates : {false, true}) {
    EXPECT_EQ(NearestSmall(SmallType::kF4E2M1, -kInfinity, saturates), -6);
    EXPECT_EQ(NearestSmall(SmallType::kF4E2M1, NAN, saturates), 6);
  }
}

}  // namespace
}  // namespace tilewire::testing
