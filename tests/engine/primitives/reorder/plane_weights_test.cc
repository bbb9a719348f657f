// SPDX-License-Identifier: Apache-2.0
//
// Weights that are split into planes of bf16 when a model is loaded: each plane of each number is
// where plane_layout.h says, the sum of planes is the number, and groups of outputs say whether
// planes hold all of their numbers.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/memory/plane_layout.h"
#include "engine/primitives/reorder/reorder.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/reorder/reorder_tensors.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr int64_t kMatrices = 2, kOutputsOfEach = 48, kInputsOfEach = 40, kKernelSide = 2,
                  kKernelTaps = kKernelSide * kKernelSide;
constexpr int64_t kBlockedInputs = 48;  // rounded up to blocks
const Dims kWeightsDims = {kMatrices, kOutputsOfEach, kInputsOfEach, kKernelSide, kKernelSide};

MemoryDesc PlanesOf(int planes) {
  const PlaneLayout layout = {.planes = planes,
                              .matrices = kMatrices,
                              .outputs = kOutputsOfEach,
                              .taps = kKernelTaps,
                              .channels = kBlockedInputs};
  return *MemoryDesc::CreatePlanes(Make(kWeightsDims, "gOIhw16i16o"), layout);
}

// In row-major order.
std::vector<float> Numbers() {
  std::vector<float> numbers(kMatrices * kOutputsOfEach * kInputsOfEach * kKernelTaps);
  FillUniform(absl::MakeSpan(numbers), 1);
  return numbers;
}

int64_t IndexOf(int64_t g, int64_t o, int64_t i, int64_t tap) {
  return ((g * kOutputsOfEach + o) * kInputsOfEach + i) * kKernelTaps + tap;
}

// The numbers in the layout of `src`, split.
Bytes Split(const std::vector<float>& numbers, const MemoryDesc& src, int planes) {
  Bytes from(src.SizeBytes());
  for (int64_t g = 0; g < kMatrices; ++g) {
    for (int64_t o = 0; o < kOutputsOfEach; ++o) {
      for (int64_t i = 0; i < kInputsOfEach; ++i) {
        for (int64_t tap = 0; tap < kKernelTaps; ++tap)
          std::memcpy(
              &from[src.Offset({g, o, i, tap / kKernelSide, tap % kKernelSide}) * sizeof(float)],
              &numbers[IndexOf(g, o, i, tap)], sizeof(float));
      }
    }
  }
  const MemoryDesc dst = PlanesOf(planes);
  Bytes to = Garbage(dst, 2);
  const auto primitive = CreateReorder({src, dst}, {}, {});
  EXPECT_THAT(primitive, IsOk());
  if (!primitive.ok()) return {};
  EXPECT_EQ((*primitive)->info().name, "reorder/avx512_planes");
  ExecuteArgs args;
  args.Set(kArgSrc, from.data()).Set(kArgDst, to.data());
  EXPECT_THAT((*primitive)->Execute(args, threading::Team::Serial()), IsOk());
  return to;
}

// The weight in the given plane of the step 'th step, in which o and i are.
float PlaneOfStep(const Bytes& split, int planes, int plane, int64_t step, int64_t o, int64_t i) {
  const int64_t pair = planes == 1 ? i % 32 / 2 : i % 16;
  const int64_t line = ((step * planes + plane) * 2 + o % 32 / 16) * 16 + pair;
  const int64_t number = line * 32 + o % 16 * 2 + (planes == 1 ? i % 2 : i % 32 / 16);
  uint16_t upper;
  std::memcpy(&upper, &split[number * sizeof(upper)], sizeof(upper));
  return std::bit_cast<float>(uint32_t{upper} << 16);
}

float PlaneOf(const Bytes& split, int planes, int plane, int64_t g, int64_t o, int64_t i,
              int64_t tap) {
  const int64_t groups = (kOutputsOfEach + 31) / 32, steps = (kBlockedInputs + 31) / 32;
  const int64_t step = ((g * groups + o / 32) * kKernelTaps + tap) * steps + i / 32;
  return PlaneOfStep(split, planes, plane, step, o, i);
}

float SumOf(const Bytes& split, int planes, int64_t g, int64_t o, int64_t i, int64_t tap) {
  float sum = 0;
  for (int plane = planes - 1; plane >= 0; --plane)
    sum += PlaneOf(split, planes, plane, g, o, i, tap);
  return sum;
}

class PlaneWeightsTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(cpu::Isa::kAvx512)) GTEST_SKIP() << "the CPU lacks avx512";
  }
};

TEST_P(PlaneWeightsTest, PlanesAddUpToTheNumbersFromAnyLayout) {
  constexpr float kLost[] = {0x1p-8f, 0x1p-16f, 0};  // of a number
  const std::vector<float> numbers = Numbers();
  for (const char* tag : {"goihw", "gOIhw16i16o", "gOIhw8i8o"}) {
    const Bytes split = Split(numbers, Make(kWeightsDims, tag), GetParam());
    ASSERT_FALSE(split.empty());
    for (int64_t g = 0; g < kMatrices; ++g) {
      for (int64_t o = 0; o < 64; ++o) {
        for (int64_t i = 0; i < 64; ++i) {
          for (int64_t tap = 0; tap < kKernelTaps; ++tap) {
            const bool real = o < kOutputsOfEach && i < kInputsOfEach;
            const float number = real ? numbers[IndexOf(g, o, i, tap)] : 0;
            ASSERT_LE(std::abs(SumOf(split, GetParam(), g, o, i, tap) - number),
                      kLost[GetParam() - 1] * std::abs(number))
                << tag << " " << g << " " << o << " " << i << " " << tap;
          }
        }
      }
    }
    for (int64_t group = 0; group < 4; ++group)
      EXPECT_EQ(split[PlanesOf(GetParam()).planes().BeyondOffset() + group], 0);
  }
}

// A number that rounds to an infinity keeps what it is, but where it has one plane only.
TEST_P(PlaneWeightsTest, GroupsSayWhatPlanesDoNotHold) {
  std::vector<float> numbers = Numbers();
  numbers[IndexOf(0, 33, 5, 1)] = -kInfinite;
  numbers[IndexOf(0, 40, 39, 3)] = std::bit_cast<float>(0x7F800001u);  // NaN
  numbers[IndexOf(1, 2, 20, 0)] = 3.4e38f;
  const Bytes split = Split(numbers, Make(kWeightsDims, "goihw"), GetParam());
  ASSERT_FALSE(split.empty());
  EXPECT_EQ(SumOf(split, GetParam(), 0, 33, 5, 1), -kInfinite);
  EXPECT_TRUE(std::isnan(SumOf(split, GetParam(), 0, 40, 39, 3)));
  const float large = SumOf(split, GetParam(), 1, 2, 20, 0);
  if (GetParam() == 1) {
    EXPECT_EQ(large, kInfinite);
  } else {
    EXPECT_NEAR(large, 3.4e38f, 3.4e38f * 0x1p-15f);
  }
  const int64_t beyond = PlanesOf(GetParam()).planes().BeyondOffset();
  EXPECT_EQ(split[beyond], 0);
  EXPECT_EQ(split[beyond + 1], 1);
  EXPECT_EQ(split[beyond + 2], 1);
  EXPECT_EQ(split[beyond + 3], 0);
}

// The same numbers as in Winograd's layout of f32, and zeros around them.
TEST_P(PlaneWeightsTest, PlanesOfWinogradAddUpToItsNumbers) {
  constexpr float kLost[] = {0x1p-8f, 0x1p-16f, 0};
  const Dims dims = {45, 37, 3, 3};  // the second panel has one block, the second step too
  for (const int tile : {2, 4}) {
    const WinogradLayout layout = {
        .tile = tile, .lanes = 16, .panel_blocks = 2, .planes = GetParam()};
    const MemoryDesc split_desc = *MemoryDesc::CreateWinograd(dims, layout);
    std::vector<float> src(45 * 37 * 9);
    FillUniform(absl::MakeSpan(src), 1);
    std::vector<float> numbers(split_desc.Unsplit().SizeBytes() / sizeof(float));
    Bytes split = Garbage(split_desc, 2);
    const auto run = [&](const MemoryDesc& dst, void* to) {
      const auto primitive = CreateReorder({Make(dims, "oihw"), dst}, {}, {});
      ASSERT_THAT(primitive, IsOk());
      ExecuteArgs args;
      args.Set(kArgSrc, src.data()).Set(kArgDst, to);
      ASSERT_THAT((*primitive)->Execute(args, threading::Team::Serial()), IsOk());
    };
    run(split_desc.Unsplit(), numbers.data());
    run(split_desc, split.data());
    const auto sum_of = [&](int64_t point, int64_t o, int64_t i) {
      const int64_t step = (point * 2 + o / 32) * 2 + i / 32;
      float sum = 0;
      for (int plane = GetParam() - 1; plane >= 0; --plane)
        sum += PlaneOfStep(split, GetParam(), plane, step, o, i);
      return sum;
    };
    for (int point = 0; point < layout.points(); ++point) {
      for (int64_t o = 0; o < 64; ++o) {
        for (int64_t i = 0; i < 64; ++i) {
          const int64_t panel = o / 32, width = panel == 0 ? 32 : 16;
          const bool real = o < 48 && i < 48;
          const float number =
              real ? numbers[layout.MatrixOffset(45, 37, panel, point) + i * width + o % 32] : 0;
          ASSERT_LE(std::abs(sum_of(point, o, i) - number),
                    kLost[GetParam() - 1] * std::abs(number))
              << tile << " " << point << " " << o << " " << i;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Planes, PlaneWeightsTest, ::testing::Values(1, 2, 3));

TEST(PlaneWeightsErrorsTest, PlanesAreNotReadBackAndTakeNoScale) {
  const MemoryDesc planes = PlanesOf(2), plain = Make(kWeightsDims, "goihw");
  EXPECT_THAT(CreateReorder({planes, plain}, {}, {}),
              StatusIs(absl::StatusCode::kUnimplemented, "planes"));
  Attributes attributes;
  attributes.output_scales = {0, {2}};
  // The one row that writes planes refuses the scales, if it is there.
  EXPECT_THAT(
      CreateReorder({plain, planes}, attributes, {}),
      StatusIs(absl::StatusCode::kUnimplemented,
               cpu::Supports(cpu::Isa::kAvx512) ? "output scales" : "reorder/avx512_planes, "));
}

}  // namespace
}  // namespace tilewire::testing
