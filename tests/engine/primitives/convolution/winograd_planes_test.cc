// SPDX-License-Identifier: Apache-2.0
//
// The Winograd rows that multiply planes of bf16 on matrix tiles: how their errors compare with
// those of f32, channels and tiles around those of a step, what becomes of infinities, and where
// they are chosen. winograd_test.cc tests them with all Winograd rows.
#include <cmath>
#include <limits>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/primitives/convolution/winograd/winograd_plan.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_case.h"
#include "tests/engine/primitives/convolution/exact_convolution.h"
#include "tests/engine/primitives/convolution/tile_machine.h"
#include "tests/support/float_tensors.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using threading::Team;

// Its parameter is the tile.
class WinogradPlanesTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  }

  static ConvolutionCase Padded(int64_t ic, int64_t oc, Dims in) {
    return Case("", {1, ic, in[0], in[1]}, oc, {3, 3}, {.left = {1, 1}});
  }

  static std::shared_ptr<const Primitive> Create(const ConvolutionCase& shape,
                                                 absl::string_view prefix) {
    ConvolutionDesc desc = DescOf(shape);
    desc.algorithm = ConvolutionAlgorithm::kWinograd;
    const std::string name = absl::StrCat("convolution/", prefix, "_winograd_", GetParam(), "x3");
    auto primitive = CreateConvolution(desc, AttributesOf({}), {.only = name});
    EXPECT_THAT(primitive, IsOk()) << shape.why;
    return primitive.ok() ? *primitive : nullptr;
  }

  static std::vector<float> Result(const ConvolutionCase& shape, const Contents& contents,
                                   absl::string_view prefix = "amx_f32_split6",
                                   const Team& team = Team::Serial()) {
    return Execute(*Create(shape, prefix), contents, team);
  }
};

// Inputs after a ReLU, weights as He et al. draw them.
Contents ContentsOfALayer(const ConvolutionCase& shape) {
  Contents contents = RandomContents(shape);
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const float scale = std::sqrt(2.0f / static_cast<float>(9 * shape.ic));
  for (float& x : contents.src) x = std::max(0.0f, normal(random));
  for (float& w : contents.weights) w = scale * normal(random);
  for (float& b : contents.bias) b = 0;
  return contents;
}

TEST_P(WinogradPlanesTest, ErrorsAreSmallerThanThoseOfF32) {
  for (const int64_t ic : {64, 256, 512}) {
    const ConvolutionCase shape = Padded(ic, 32, {12, 12});
    const Contents contents = ContentsOfALayer(shape);
    const std::vector<double> exact = ExactConvolution(shape, contents, {});
    const double error = RelativeL2(Result(shape, contents), exact);
    const double of_vectors = RelativeL2(Result(shape, contents, "avx512_f32"), exact);
    RecordProperty(absl::StrCat("error_", ic), absl::StrCat(error, " of ", of_vectors));
    EXPECT_LT(error, 0.9 * of_vectors) << ic;
  }
}

TEST_P(WinogradPlanesTest, ChannelsAroundBlocksAndSteps) {
  for (const int64_t ic : {1, 15, 16, 17, 31, 32, 33}) {
    for (const int64_t oc : {1, 15, 16, 17, 31, 32, 33}) {
      const ConvolutionCase shape = Padded(ic, oc, {5, 6});
      const Contents contents = RandomContents(shape);
      EXPECT_LE(RelativeL2(Result(shape, contents), ExactConvolution(shape, contents, {})), 1e-5)
          << ic << " to " << oc;
    }
  }
}

// Groups of 16 tiles and of 32, whole ones and not, in blocks that threads take and that they
// share. Bits are those of one image and one thread.
TEST_P(WinogradPlanesTest, BlocksOfTilesGiveTheBitsOfAnImageAlone) {
  threading::Arena arena(3);
  for (const ConvolutionCase& one : {Padded(16, 17, {41, 45}), Padded(24, 40, {14, 15}),
                                     Padded(112, 112, {24, 23}), Padded(33, 16, {4, 4})}) {
    const Contents contents = RandomContents(one);
    const std::vector<float> expected = Result(one, contents);
    EXPECT_LE(RelativeL2(expected, ExactConvolution(one, contents, {})), 1e-5);
    ConvolutionCase shape = one;
    shape.batch = 5;
    const size_t src_size = contents.src.size();
    Contents several = RandomContents(shape);
    several.weights = contents.weights;
    several.bias = contents.bias;
    std::copy_n(contents.src.begin(), src_size, several.src.begin() + 3 * src_size);
    const std::vector<float> result = Result(shape, several, "amx_f32_split6", Team(&arena));
    const auto image = result.begin() + 3 * expected.size();
    EXPECT_EQ(std::vector<float>(image, image + expected.size()), expected);
  }
}

TEST(WinogradPlanesPlanTest, BlocksAreTakenWholeWhereTheyStayInCache) {
  const auto plan = [](int64_t channels, int64_t size) {
    const ConvolutionCase shape =
        Case("", {1, channels, size, size}, channels, {3, 3}, {.left = {1, 1}});
    return convolution::PlanWinogradByPlanes(convolution::GeometryOf(DescOf(shape)), 4);
  };
  EXPECT_FALSE(plan(16, 112).shared);
  EXPECT_FALSE(plan(64, 56).shared);
  EXPECT_EQ(plan(64, 56).BlockTiles(), 32);
  EXPECT_TRUE(plan(64, 14).shared);  // one block, whose pieces are for several threads
  EXPECT_EQ(plan(64, 14).BlockTiles(), 16);
  EXPECT_TRUE(plan(256, 56).shared);
  EXPECT_EQ(plan(256, 56).BlockTiles(), 128);
  EXPECT_TRUE(plan(2048, 56).shared);
  EXPECT_EQ(plan(2048, 56).BlockTiles(), 64);  // the scratchpad stays small
}

// An infinity, or NaN, makes no number of as many results as it does with products of f32, those
// of tiles that read it, and changes no bit of the others.
TEST_P(WinogradPlanesTest, InfinitiesStayInTheTilesThatReadThem) {
  ConvolutionCase shape = Padded(40, 24, {17, 18});
  shape.batch = 2;
  const Contents tame = RandomContents(shape);
  const std::vector<float> before = Result(shape, tame);
  for (const float number :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    Contents contents = tame;
    contents.src[3 * 17 * 18 + 8 * 18 + 9] = number;
    const std::vector<float> result = Result(shape, contents);
    const std::vector<float> of_vectors = Result(shape, contents, "avx512_f32");
    int64_t numbers = 0;
    for (size_t i = 0; i < result.size(); ++i) {
      ASSERT_EQ(std::isfinite(result[i]), std::isfinite(of_vectors[i])) << number << " " << i;
      if (!std::isfinite(result[i])) continue;
      ASSERT_EQ(result[i], before[i]) << number << " " << i;
      ++numbers;
    }
    EXPECT_LT(numbers, static_cast<int64_t>(result.size()));
    EXPECT_GT(numbers, static_cast<int64_t>(result.size() / 2));
  }
}

TEST_P(WinogradPlanesTest, InfiniteWeightsStayInTheirOutputs) {
  const ConvolutionCase shape = Padded(40, 24, {9, 10});
  const Contents tame = RandomContents(shape);
  Contents contents = tame;
  contents.weights[(17 * 40 + 5) * 9 + 4] = std::numeric_limits<float>::infinity();
  contents.weights[(3 * 40 + 39) * 9] = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> before = Result(shape, tame), result = Result(shape, contents);
  for (size_t i = 0; i < result.size(); ++i) {
    const size_t output = i / (9 * 10);
    if (output == 17 || output == 3) {
      ASSERT_FALSE(std::isfinite(result[i])) << i;
    } else {
      ASSERT_EQ(result[i], before[i]) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tiles, WinogradPlanesTest, ::testing::Values(2, 4));

struct TileChoice {
  const char* model;
  int64_t ic, oc, size;
  const char *exact, *fast;
};

// The fastest rows of tests/bench/figures/sapphire_rapids.md: Winograd's products by planes take
// longer than those by vectors, whose inputs and sums stay in the second cache. The choice for
// tiles is the same on every CPU.
TEST(WinogradPlanesChoiceTest, IsTheCostModelsForTheLayersOfKnownModels) {
  constexpr const char *k4x3 = "avx512_f32_winograd_4x3", *k2x3 = "avx512_f32_winograd_2x3";
  constexpr const char *kDirect = "avx512_f32_direct", *kThree = "amx_f32_split3_planes";
  static constexpr TileChoice kTileChoices[] = {
      {"VGG-16", 64, 64, 224, k4x3, kThree},     {"VGG-16", 64, 128, 112, k4x3, kThree},
      {"VGG-16", 128, 128, 112, k4x3, k4x3},     {"VGG-16", 128, 256, 56, k4x3, k4x3},
      {"VGG-16", 256, 256, 56, k4x3, k4x3},      {"VGG-16", 256, 512, 28, k4x3, k4x3},
      {"VGG-16", 512, 512, 28, k4x3, k4x3},      {"VGG-16", 512, 512, 14, k2x3, kThree},
      {"ResNet-50", 64, 64, 56, k4x3, kThree},   {"ResNet-50", 128, 128, 28, k4x3, kThree},
      {"ResNet-50", 256, 256, 14, k2x3, kThree}, {"ResNet-50", 512, 512, 7, kDirect, kThree},
      {"GoogLeNet", 64, 192, 56, k4x3, kThree},  {"GoogLeNet", 96, 128, 28, k4x3, kThree},
  };
  for (const TileChoice& choice : kTileChoices) {
    for (const bool is_fast : {false, true}) {
      ConvolutionCase shape =
          Case("", {1, choice.ic, choice.size, choice.size}, choice.oc, {3, 3}, {.left = {1, 1}});
      Attributes attributes = AttributesOf({});
      attributes.precision = is_fast ? Precision::kFast : Precision::kExact;
      for (const int64_t batch : {1, 8}) {
        shape.batch = batch;
        const auto primitive = CreateConvolution(
            DescOf(shape), attributes, {.max_isa = cpu::Isa::kAmx, .machine = MachineWithTiles()});
        ASSERT_THAT(primitive, IsOk());
        EXPECT_EQ(std::string((*primitive)->name()),
                  absl::StrCat("convolution/", is_fast ? choice.fast : choice.exact))
            << choice.model << ": " << choice.ic << " to " << choice.oc << " channels of "
            << choice.size << " squared";
      }
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
