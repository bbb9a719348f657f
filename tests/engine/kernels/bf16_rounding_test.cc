// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/planes/bf16_rounding.h"

#include <cmath>
#include <limits>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/memory/narrow_floats.h"
#include "gtest/gtest.h"
#include "tests/support/random_tensor.h"

namespace tilewire::testing {
namespace {

class Bf16RoundingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!cpu::Supports(cpu::Isa::kAvx512Bf16)) GTEST_SKIP() << "the CPU lacks avx512_bf16";
    rounding_ = jit::Compile<Bf16Rounding>("rounding").value();
  }

  // Lines of the first `count` of each 32 numbers, the rest as 0.
  std::vector<uint16_t> Round(const std::vector<float>& numbers, int64_t count) {
    const int64_t lines = static_cast<int64_t>(numbers.size()) / kBf16LineNumbers;
    std::vector<uint16_t> rounded(numbers.size(), 0x7777);
    const auto* src = reinterpret_cast<const std::byte*>(numbers.data());
    const Bf16RoundingArgs args = {.src = src,
                                   .second = src + kBf16LineBytes,
                                   .dst = reinterpret_cast<std::byte*>(rounded.data()),
                                   .src_step = 2 * kBf16LineBytes,
                                   .lines = lines,
                                   .first_mask = Bf16Rounding::MaskOf(count, 0),
                                   .second_mask = Bf16Rounding::MaskOf(count, 16)};
    rounding_->entry<Bf16RoundingFunction>()(&args);
    return rounded;
  }

  std::unique_ptr<const Bf16Rounding> rounding_;
};

TEST_F(Bf16RoundingTest, RoundsToNearestEvenWhateverTheNumberOfLinesAndLanes) {
  for (const int64_t lines : {1, 3, 4, 9}) {
    std::vector<float> numbers = RandomFloats(lines * kBf16LineNumbers, 5);
    numbers[1] = 1 + 0x1p-8f;    // halfway, to the even one below
    numbers[2] = 1 + 0x3p-8f;    // halfway, to the even one above
    numbers[17] = -1 - 0x1p-7f;  // a number of bf16
    for (const int64_t count : {1, 15, 16, 17, 32}) {
      const std::vector<uint16_t> rounded = Round(numbers, count);
      for (size_t i = 0; i < numbers.size(); ++i) {
        const bool read = static_cast<int64_t>(i) % kBf16LineNumbers < count;
        ASSERT_EQ(rounded[i], read ? ToBf16(numbers[i]) : 0) << i << " of " << count;
      }
    }
  }
}

TEST_F(Bf16RoundingTest, KeepsInfinitiesAndNaNAndTurnsTheLargestInfinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = {infinity, -infinity, std::nanf(""), 3.39e38f,
                                3.4e38f,  -3.4e38f,  1e-40f};
  numbers.resize(kBf16LineNumbers);
  const std::vector<uint16_t> rounded = Round(numbers, kBf16LineNumbers);
  EXPECT_EQ(WidenBf16(rounded[0]), infinity);
  EXPECT_EQ(WidenBf16(rounded[1]), -infinity);
  EXPECT_TRUE(std::isnan(WidenBf16(rounded[2])));
  EXPECT_LT(WidenBf16(rounded[3]), infinity);
  EXPECT_EQ(WidenBf16(rounded[4]), infinity);
  EXPECT_EQ(WidenBf16(rounded[5]), -infinity);
  EXPECT_EQ(rounded[6], 0) << "a denormal";
}

}  // namespace
}  // namespace tilewire::testing
