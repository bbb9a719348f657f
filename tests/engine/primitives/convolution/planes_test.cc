// SPDX-License-Identifier: Apache-2.0
//
// The rows of convolution that multiply planes of bf16 on matrix tiles: which shapes they take, how
// large their errors are, and what becomes of numbers that planes do not hold. The tests of all
// rows are in implementations_test.cc.
#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_case.h"
#include "tests/engine/primitives/integer_tensors.h"
#include "tests/engine/primitives/row_name.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using ::testing::NanSensitiveFloatEq;
using ::testing::Pointwise;
using threading::Team;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNotANumber = std::numeric_limits<float>::quiet_NaN();

std::vector<Implementation<ConvolutionDesc>> PlaneRowsOfTable() {
  std::vector<Implementation<ConvolutionDesc>> rows;
  for (const Implementation<ConvolutionDesc>& row : ConvolutionImplementations()) {
    if (row.traits.algorithm == convolution::kPlanes) rows.push_back(row);
  }
  return rows;
}

// A case of every kind that the rows by planes are for.
std::vector<ConvolutionCase> PlaneCases() {
  return {
      Case("1x1, a row of tiles and a part of one", {1, 64, 9, 7}, 64, {1, 1}),
      Case("1x1, odd blocks, both tails", {2, 120, 8, 4}, 136, {1, 1}),
      Case("1x1 with stride 2", {1, 96, 15, 15}, 96, {1, 1}, {.strides = {2, 2}}),
      Case("3x3, lines shared by windows", {2, 64, 13, 11}, 80, {3, 3}, {.left = {1, 1}}),
      Case("3x2 in several strips", {1, 96, 46, 44}, 16, {3, 2}, {.left = {1, 0}}),
      Case("dilated with stride 2", {1, 48, 28, 40}, 64, {3, 2},
           {.strides = {2, 3}, .dilations = {1, 2}, .left = {2, 1}}),
      Case("3x3 with stride 2", {1, 32, 15, 15}, 56, {3, 3}, {.strides = {2, 2}, .left = {1, 1}}),
      Case("dilated", {1, 32, 9, 9}, 64, {3, 3}, {.dilations = {1, 1}, .left = {2, 2}}),
      Case("groups", {2, 128, 8, 8}, 128, {3, 3}, {.groups = 2, .left = {1, 1}}),
      Case("kernel of 1x7", {1, 64, 5, 17}, 64, {1, 7}, {.left = {0, 3}, .bias = false}),
      Case("3D", {1, 32, 3, 5, 5}, 64, {3, 3, 3}, {.left = {1, 1, 1}}),
  };
}

std::shared_ptr<const Primitive> ReferenceOf(const ConvolutionCase& shape,
                                             const Attributes& attributes) {
  return *CreateConvolution(DescOf(shape), attributes, {.reference_only = true});
}

class PlanesTest : public ::testing::TestWithParam<Implementation<ConvolutionDesc>> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(GetParam().isa)) GTEST_SKIP() << "the CPU lacks amx";
  }

  std::shared_ptr<const Primitive> Create(const ConvolutionCase& shape, Attributes attributes,
                                          absl::string_view pattern = "") {
    attributes.precision = GetParam().traits.precision;
    auto primitive =
        CreateConvolution(DescOf(shape, pattern, pattern), attributes, {.only = GetParam().name});
    EXPECT_THAT(primitive, IsOk()) << shape.why;
    return primitive.ok() ? *primitive : nullptr;
  }

  // Results are those of the reference, the infinities and NaN too.
  void ExpectMeans(const ConvolutionCase& shape, const Contents& contents,
                   const Attributes& attributes) {
    const auto primitive = Create(shape, attributes);
    ASSERT_NE(primitive, nullptr);
    const std::vector<float> result = Execute(*primitive, contents, Team::Serial());
    const std::vector<float> expected =
        Execute(*ReferenceOf(shape, attributes), contents, Team::Serial());
    for (size_t i = 0; i < result.size(); ++i) {
      if (std::isnan(expected[i])) {
        ASSERT_TRUE(std::isnan(result[i])) << i;
      } else if (std::isinf(expected[i])) {
        ASSERT_EQ(result[i], expected[i]) << i;
      } else {
        ASSERT_NEAR(result[i], expected[i], 0.5 + 0.01 * std::abs(expected[i])) << i;
      }
    }
  }
};

TEST_P(PlanesTest, EveryKindOfShapeIsTakenAndExactOnSmallIntegers) {
  for (const ConvolutionCase& shape : PlaneCases()) {
    SCOPED_TRACE(shape.why);
    const Attributes attributes = AttributesOf({SumPostOp{}});
    const auto primitive = Create(shape, attributes);
    ASSERT_NE(primitive, nullptr);
    const Contents contents = IntegerContents(shape);
    bool tail_is_zero = false;
    EXPECT_EQ(Execute(*primitive, contents, Team::Serial(), &tail_is_zero),
              Execute(*ReferenceOf(shape, attributes), contents, Team::Serial()));
    EXPECT_TRUE(tail_is_zero);
  }
}

// Relative, of all results (L2), against double precision.
double ErrorOf(const std::vector<float>& result, const ConvolutionCase& shape,
               const Contents& contents) {
  double error = 0, magnitude = 0;
  const int64_t pixels = shape.in[0] * shape.in[1];
  for (int64_t o = 0; o < shape.oc; ++o) {
    for (int64_t p = 0; p < pixels; ++p) {
      double sum = contents.bias[o];
      for (int64_t c = 0; c < shape.ic; ++c)
        sum += double{contents.src[c * pixels + p]} * contents.weights[o * shape.ic + c];
      error += std::pow(result[o * pixels + p] - sum, 2);
      magnitude += sum * sum;
    }
  }
  return std::sqrt(error / magnitude);
}

TEST_P(PlanesTest, ErrorsAreThoseOfThePrecision) {
  const ConvolutionCase shape = Case("", {1, 256, 8, 6}, 64, {1, 1});
  const auto primitive = Create(shape, AttributesOf({}));
  const auto vectors =
      CreateConvolution(DescOf(shape), AttributesOf({}), {.only = "convolution/avx512_f32_direct"});
  ASSERT_TRUE(primitive != nullptr && vectors.ok());
  const Contents contents = RandomContents(shape);
  const double error = ErrorOf(Execute(*primitive, contents, Team::Serial()), shape, contents);
  const double of_vectors = ErrorOf(Execute(**vectors, contents, Team::Serial()), shape, contents);
  switch (GetParam().traits.precision) {
    case Precision::kExact:
      EXPECT_LE(error, of_vectors);
      break;
    case Precision::kFast:
      EXPECT_LE(error, 1e-5);
      break;
    case Precision::kBf16:
      EXPECT_LE(error, 0x1p-8);
      break;
  }
}

TEST_P(PlanesTest, BothLayoutsOfPixelsGiveTheSameBits) {
  const ConvolutionCase shape = Case("", {2, 64, 8, 9}, 96, {2, 2}, {.strides = {2, 1}});
  const Attributes attributes = AttributesOf({SumPostOp{}, ReluPostOp()});
  const auto blocks = Create(shape, attributes), plain = Create(shape, attributes, "acdb");
  ASSERT_TRUE(blocks != nullptr && plain != nullptr);
  const Contents contents = RandomContents(shape);
  EXPECT_EQ(Execute(*blocks, contents, Team::Serial()), Execute(*plain, contents, Team::Serial()));
}

// Weights that are split when a model is loaded, and those that are split in every run; an infinity
// takes what the planes of its outputs add up to.
TEST_P(PlanesTest, SplitWeightsGiveTheBitsOfWeightsThatAreSplitInEveryRun) {
  for (const ConvolutionCase& shape : PlaneCases()) {
    SCOPED_TRACE(shape.why);
    const auto split = Create(shape, AttributesOf({}));
    ASSERT_NE(split, nullptr);
    ConvolutionDesc desc = DescOf(shape);
    desc.weights = split->Desc(kArgWeights).Unsplit();
    Attributes attributes = AttributesOf({});
    attributes.precision = GetParam().traits.precision;
    const auto numbers = CreateConvolution(desc, attributes, {.only = GetParam().name});
    ASSERT_THAT(numbers, IsOk());
    EXPECT_EQ(split->Desc(kArgWeights).format_kind(), FormatKind::kPlanes);
    EXPECT_LT(split->info().scratchpad_bytes, (*numbers)->info().scratchpad_bytes);
    const Contents contents = RandomContents(shape);
    EXPECT_EQ(Execute(*split, contents, Team::Serial()),
              Execute(**numbers, contents, Team::Serial()));
  }
}

TEST_P(PlanesTest, OnlyItsOwnPlanesAreRead) {
  const ConvolutionCase shape = Case("", {1, 64, 8, 8}, 72, {1, 1});
  const auto primitive = Create(shape, AttributesOf({}));
  ASSERT_NE(primitive, nullptr);
  ConvolutionDesc desc = DescOf(shape);
  PlaneLayout others = primitive->Desc(kArgWeights).planes();
  others.planes = others.planes % 3 + 1;
  desc.weights = *MemoryDesc::CreatePlanes(primitive->Desc(kArgWeights).Unsplit(), others);
  Attributes attributes = AttributesOf({});
  attributes.precision = GetParam().traits.precision;
  EXPECT_THAT(CreateConvolution(desc, attributes, {.only = GetParam().name}),
              StatusIs(absl::StatusCode::kUnimplemented, "weights are not"));
  EXPECT_THAT(CreateConvolution(desc, attributes, {.reference_only = true}),
              StatusIs(absl::StatusCode::kUnimplemented, "does not read"));
}

// More weights than the planes of a chunk, and few pixels: outputs are shared out.
TEST_P(PlanesTest, WeightsInSeveralChunksGiveTheBitsOfAnyTeam) {
  const ConvolutionCase shape = Case("", {1, 1024, 4, 8}, 1152, {1, 1});
  const auto primitive = Create(shape, AttributesOf({}));
  ASSERT_NE(primitive, nullptr);
  const Contents contents = IntegerContents(shape);
  threading::Arena arena(2);
  const std::vector<float> result = Execute(*primitive, contents, Team(&arena));
  EXPECT_EQ(result, Execute(*ReferenceOf(shape, AttributesOf({})), contents, Team::Serial()));
}

TEST_P(PlanesTest, InfinitiesMeanWhatTheyMeanInF32) {
  for (const ConvolutionCase& shape :
       {Case("1x1", {2, 64, 8, 8}, 72, {1, 1}),
        Case("3x3", {2, 32, 15, 15}, 56, {3, 3}, {.strides = {2, 2}})}) {
    SCOPED_TRACE(shape.why);
    Contents contents = RandomContents(shape);
    const int64_t plane = shape.in[0] * shape.in[1];
    contents.src[3 * plane + 5] = kInfinity;
    contents.src[17 * plane + 5] = 0;
    contents.src[9 * plane + 40] = -kInfinity;
    contents.src[30 * plane + 48] = kNotANumber;
    contents.src[30 * plane + 47] = 3.4e38f;
    for (const Attributes& attributes :
         {AttributesOf({}), AttributesOf({SumPostOp{}, ReluPostOp()})})
      ExpectMeans(shape, contents, attributes);
    contents.weights[7] = kInfinity;  // of the first output
    contents.weights[contents.weights.size() - 3] = kNotANumber;
    ExpectMeans(shape, contents, AttributesOf({SumPostOp{}}));
  }
}

// Tiles multiply what tensors of bf16 hold, the infinities and NaN too, in src and in weights.
TEST_P(PlanesTest, InfinitiesOfTensorsOfBf16MeanWhatTheyMeanInF32) {
  if (GetParam().traits.precision != Precision::kBf16) GTEST_SKIP() << "takes no such tensors";
  for (const ConvolutionCase& shape :
       {Case("read in place", {2, 64, 8, 8}, 72, {1, 1}),
        Case("copied", {2, 32, 15, 15}, 56, {3, 3}, {.strides = {2, 2}})}) {
    SCOPED_TRACE(shape.why);
    ConvolutionDesc desc = DescOf(shape);
    desc.src = *MemoryDesc::CreateAny(desc.src.dims(), DataType::kBf16);
    const auto reference = CreateConvolution(desc, AttributesOf({}), {.reference_only = true});
    Attributes attributes = AttributesOf({});
    attributes.precision = Precision::kBf16;
    ASSERT_OK_AND_ASSIGN(const auto split,
                         CreateConvolution(desc, attributes, {.only = GetParam().name}));
    desc.weights = split->Desc(kArgWeights).Unsplit();
    ASSERT_OK_AND_ASSIGN(const auto numbers,
                         CreateConvolution(desc, attributes, {.only = GetParam().name}));
    Contents contents = IntegerContents(shape);
    const int64_t plane = shape.in[0] * shape.in[1];
    contents.src[3 * plane + 5] = kInfinity;
    contents.src[9 * plane + 40] = -kInfinity;
    contents.src[30 * plane + 48] = kNotANumber;
    contents.weights[7] = kInfinity;  // of the first output
    contents.weights[contents.weights.size() - 3] = kNotANumber;
    const std::vector<float> expected = Execute(**reference, contents, Team::Serial());
    EXPECT_THAT(Execute(*split, contents, Team::Serial()),
                Pointwise(NanSensitiveFloatEq(), expected));
    EXPECT_THAT(Execute(*numbers, contents, Team::Serial()),
                Pointwise(NanSensitiveFloatEq(), expected));
  }
}

// A pixel's bits are its own, whatever its neighbours hold.
TEST_P(PlanesTest, InfinitiesElsewhereChangeNoBit) {
  const ConvolutionCase shape = Case("", {2, 64, 8, 8}, 72, {1, 1});
  const auto primitive = Create(shape, AttributesOf({}));
  ASSERT_NE(primitive, nullptr);
  Contents contents = RandomContents(shape);
  const std::vector<float> before = Execute(*primitive, contents, Team::Serial());
  contents.src[5] = kInfinity;
  const std::vector<float> after = Execute(*primitive, contents, Team::Serial());
  for (size_t i = 0; i < before.size(); ++i) {
    if (i < before.size() / 2 && i % 64 == 5) continue;
    ASSERT_EQ(before[i], after[i]) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, PlanesTest, ::testing::ValuesIn(PlaneRowsOfTable()),
                         RowName<Implementation<ConvolutionDesc>>);

std::string ChosenFor(const ConvolutionCase& shape, Precision precision,
                      absl::string_view pattern = "") {
  Attributes attributes = AttributesOf({});
  attributes.precision = precision;
  const auto primitive = CreateConvolution(DescOf(shape, pattern, pattern), attributes, {});
  return primitive.ok() ? (*primitive)->info().name : std::string(primitive.status().message());
}

TEST(PlanesChoiceTest, ShapeAndPrecisionDecide) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const ConvolutionCase point = Case("", {1, 64, 56, 56}, 256, {1, 1});
  EXPECT_EQ(ChosenFor(point, Precision::kExact), "convolution/amx_f32_split6_planes");
  EXPECT_EQ(ChosenFor(point, Precision::kFast), "convolution/amx_f32_split3_planes");
  EXPECT_EQ(ChosenFor(point, Precision::kBf16), "convolution/amx_bf16_planes");
  EXPECT_EQ(ChosenFor(point, Precision::kExact, "abcd"), "convolution/amx_f32_plain");
  const ConvolutionCase few_rows = Case("", {1, 512, 7, 7}, 2048, {1, 1});
  EXPECT_EQ(ChosenFor(few_rows, Precision::kExact), "convolution/avx512_f32_direct");
  EXPECT_EQ(ChosenFor(few_rows, Precision::kBf16), "convolution/amx_bf16_planes");
  const ConvolutionCase window = Case("", {1, 128, 28, 28}, 128, {3, 3}, {.left = {1, 1}});
  EXPECT_EQ(ChosenFor(window, Precision::kExact), "convolution/avx512_f32_winograd_4x3");
  EXPECT_EQ(ChosenFor(window, Precision::kFast), "convolution/amx_f32_split3_planes");
  const ConvolutionCase stem =
      Case("", {1, 3, 64, 64}, 64, {7, 7}, {.strides = {2, 2}, .left = {3, 3}});
  EXPECT_EQ(ChosenFor(stem, Precision::kBf16), "convolution/amx_bf16_first_layer");
  const ConvolutionCase narrow = Case("", {1, 16, 28, 28}, 16, {1, 1});
  EXPECT_EQ(ChosenFor(narrow, Precision::kExact), "convolution/avx512_f32_direct");
}

}  // namespace
}  // namespace tilewire::testing
