// SPDX-License-Identifier: Apache-2.0
//
// Every f32 row of ConvolutionImplementations() that adds up products one by one against the
// reference. integer_test.cc and winograd_test.cc have the others.
#include <algorithm>
#include <cmath>
#include <ostream>
#include <string>

#include "absl/strings/match.h"
#include "engine/primitives/convolution/direct/weights_prefetch.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"
#include "tests/engine/primitives/integer_tensors.h"
#include "tests/engine/primitives/row_name.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using ::testing::TestWithParam;
using ::testing::ValuesIn;
using threading::Team;

struct PostOpsCase {
  const char* why;
  std::vector<PostOp> chain;
};

EltwisePostOp Eltwise(EltwiseAlgorithm algorithm, float alpha = 0, float scale = 1) {
  return {.op = {.function = algorithm, .alpha = alpha}, .scale = scale};
}

// Slopes of either sign, and 0.
PReluPostOp PRelu(int64_t channels) {
  PReluPostOp prelu;
  for (int64_t c = 0; c < channels; ++c)
    prelu.slopes.push_back(static_cast<float>(c % 7 - 2) * 0.25f);
  return prelu;
}

std::vector<PostOpsCase> PostOpsCases() {
  const EltwisePostOp relu = Eltwise(EltwiseAlgorithm::kRelu);
  const SumPostOp sum;
  return {
      {"relu", {relu}},
      {"leaky relu", {Eltwise(EltwiseAlgorithm::kRelu, 0.25f)}},
      {"sum", {sum}},
      {"sum -> relu", {SumPostOp{.scale = 0.5f}, relu}},
      {"relu -> sum", {relu, sum}},
      {"relu -> sum -> relu", {relu, SumPostOp{.scale = -2}, relu}},
      {"tanh", {Eltwise(EltwiseAlgorithm::kTanh)}},
      {"logistic: f(0) is not 0, the tail must be", {Eltwise(EltwiseAlgorithm::kLogistic)}},
      {"elu, scaled", {Eltwise(EltwiseAlgorithm::kElu, 0.5f, 2)}},
      {"four entries", {sum, Eltwise(EltwiseAlgorithm::kAbs), relu, sum}},
  };
}

std::shared_ptr<const Primitive> Reference(const ConvolutionCase& shape,
                                           const Attributes& attributes) {
  return *CreateConvolution(DescOf(shape), attributes, {.reference_only = true});
}

// |result - exact| <= K 2^-24 sum|a b| (Higham 2002, 3.1) holds for both sides; K counts products,
// bias and sums. The elementwise functions here have a slope of 2 at most, and errors of some units
// in the last place. `left_out` is what a row leaves out of a product.
void ExpectClose(const ConvolutionCase& shape, const Contents& contents,
                 const std::vector<float>& result, const std::vector<float>& expected,
                 size_t post_ops, double left_out) {
  const std::vector<float> bound =
      Execute(*Reference(shape, AttributesOf({})), Magnitudes(contents), Team::Serial());
  ASSERT_EQ(result.size(), expected.size());
  const double slope = post_ops == 0 ? 1 : 2;
  for (size_t i = 0; i < result.size(); ++i) {
    const double tolerance =
        (2 * slope * (shape.Products() + 1) * std::ldexp(1, -24) + slope * left_out) * bound[i] +
        8.0 * post_ops * std::ldexp(1, -23) *
            (bound[i] + std::abs(expected[i]) + 2 * std::abs(contents.dst[i]));
    ASSERT_NEAR(result[i], expected[i], tolerance) << "at element " << i;
  }
}

class ConvolutionTest : public TestWithParam<Implementation<ConvolutionDesc>> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(GetParam().isa))
      GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(GetParam().isa);
  }

  // Null where the implementation is for shapes of another kind only.
  std::shared_ptr<const Primitive> Create(const ConvolutionCase& shape, Attributes attributes,
                                          absl::string_view src_pattern = "") {
    attributes.precision = GetParam().traits.precision;
    auto primitive = CreateConvolution(DescOf(shape, src_pattern), attributes, OnlyTheRow());
    CountCase(GetParam().name, primitive.ok());
    if (primitive.ok()) return *primitive;
    EXPECT_FALSE(IsFor(shape, src_pattern)) << primitive.status();
    return nullptr;
  }

  static CreateOptions OnlyTheRow() { return {.only = GetParam().name}; }

  static bool IsFor(const ConvolutionCase& shape, absl::string_view src_pattern) {
    const uint8_t algorithm = GetParam().traits.algorithm;
    if (algorithm == convolution::kPlanes) return false;  // planes_test.cc has what it must take
    if (algorithm == convolution::kFirstLayer && GetParam().traits.precision == Precision::kBf16) {
      const bool is_image = shape.groups == 1 && shape.ic <= 4 && shape.in.size() < 3;
      const int64_t taps = shape.kernel.back();
      const bool fits = taps >= 3 && (taps <= 8 || GetParam().isa != cpu::Isa::kAmx);
      return is_image && fits && !shape.strides.empty() && shape.strides.back() == 2 &&
             (shape.dilations.empty() || shape.dilations.back() == 0);
    }
    if (GetParam().traits.precision == Precision::kBf16) {
      const int64_t ic = shape.ic / shape.groups, oc = shape.oc / shape.groups;
      const bool aligned = shape.groups == 1 || (ic % 16 == 0 && oc % 16 == 0);
      return ic >= 16 && oc >= 16 && aligned && src_pattern.empty();
    }
    if (algorithm == convolution::kDepthwise) {
      const bool depthwise = shape.groups > 1 && shape.groups == shape.ic && shape.ic == shape.oc;
      return depthwise && src_pattern.empty();
    }
    if (algorithm == convolution::kFewOutputs) {
      return absl::StartsWith(shape.why, "few outputs") && src_pattern.empty();
    }
    if (algorithm == convolution::kGrouped)
      return absl::StartsWith(shape.why, "grouped") && src_pattern.empty();
    if (algorithm == convolution::kFirstLayer) {
      return shape.groups == 1 && shape.ic <= 4 && (shape.in.size() < 3 || shape.kernel[0] == 1);
    }
    return true;
  }

  void ExpectMatches(const ConvolutionCase& shape, const Attributes& attributes,
                     absl::string_view src_pattern = "") {
    SCOPED_TRACE(shape.why);
    const std::shared_ptr<const Primitive> primitive = Create(shape, attributes, src_pattern);
    if (primitive == nullptr) return;
    EXPECT_EQ(primitive->name(), GetParam().name);
    const Contents contents = RandomContents(shape);
    bool tail_is_zero = false;
    const std::vector<float> result = Execute(*primitive, contents, Team::Serial(), &tail_is_zero);
    EXPECT_TRUE(tail_is_zero);
    ExpectClose(shape, contents, result,
                Execute(*Reference(shape, attributes), contents, Team::Serial()),
                attributes.post_ops.entries().size(), LeftOut(GetParam()));
  }
};

TEST_P(ConvolutionTest, IsExactOnIntegers) {
  for (const ConvolutionCase& shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    const std::shared_ptr<const Primitive> primitive = Create(shape, AttributesOf({SumPostOp{}}));
    if (primitive == nullptr) continue;
    const Contents contents = IntegerContents(shape);
    EXPECT_EQ(Execute(*primitive, contents, Team::Serial()),
              Execute(*Reference(shape, AttributesOf({SumPostOp{}})), contents, Team::Serial()));
  }
}

TEST_P(ConvolutionTest, MatchesReferenceOnEveryShape) {
  for (const ConvolutionCase& shape : ConvolutionCases()) ExpectMatches(shape, AttributesOf({}));
}

TEST_P(ConvolutionTest, AppliesPostOpsInOrder) {
  const ConvolutionCase shapes[] = {
      Case("output tail", {2, 20, 6, 17}, 40, {3, 3}, {.left = {1, 1}}),
      Case("groups that are copied", {1, 24, 5, 5}, 24, {3, 3}, {.groups = 3, .left = {1, 1}}),
      Case("depthwise", {1, 24, 5, 30}, 24, {3, 3}, {.groups = 24, .left = {1, 1}}),
      Case("few outputs", {2, 24, 8, 19}, 2, {3, 3}, {.left = {1, 1}}),
      Case("few outputs of groups", {1, 32, 8, 19}, 4, {3, 3}, {.groups = 2, .left = {1, 1}}),
      Case("grouped", {2, 15, 6, 29}, 30, {3, 3}, {.groups = 15, .left = {1, 1}}),
  };
  for (const PostOpsCase& post_ops : PostOpsCases()) {
    SCOPED_TRACE(post_ops.why);
    for (const ConvolutionCase& shape : shapes) ExpectMatches(shape, AttributesOf(post_ops.chain));
  }
  for (const ConvolutionCase& shape : shapes) {
    const PReluPostOp prelu = PRelu(shape.oc);
    ExpectMatches(shape, AttributesOf({prelu}));
    ExpectMatches(shape, AttributesOf({SumPostOp{}, prelu, Eltwise(EltwiseAlgorithm::kAbs)}));
  }
}

TEST_P(ConvolutionTest, AppliesPostOpsAfterTheLastChunkOfChannels) {
  const ConvolutionCase shape = Case("", {1, 1040, 5, 5}, 24, {3, 3}, {.left = {1, 1}});
  ExpectMatches(shape, AttributesOf({SumPostOp{}, Eltwise(EltwiseAlgorithm::kElu, 0.5f, 2)}));
  ExpectMatches(shape, AttributesOf({SumPostOp{}, PRelu(24)}));
}

TEST_P(ConvolutionTest, ReadsPlainSources) {
  const ConvolutionCase shapes[] = {
      Case("colours", {2, 3, 13, 12}, 32, {3, 3}, {.strides = {2, 2}, .left = {1, 1}}),
      Case("more than a block", {1, 35, 5, 6}, 16, {1, 1}),
      Case("groups", {1, 6, 5, 6}, 32, {3, 3}, {.groups = 2}),
  };
  for (const char* pattern : {"abcd", "acdb"}) {
    SCOPED_TRACE(pattern);
    for (const ConvolutionCase& shape : shapes) ExpectMatches(shape, AttributesOf({}), pattern);
  }
}

// The first layers of well-known networks give the same bits in both layouts of clients.
TEST_P(ConvolutionTest, FirstLayersDoNotDependOnTheLayoutOfTheirSource) {
  const ConvolutionCase shapes[] = {
      Case("ResNet", {2, 3, 23, 47}, 64, {7, 7},
           {.strides = {2, 2}, .left = {3, 3}, .right = {3, 3}}),
      Case("VGG", {1, 3, 9, 33}, 40, {3, 3}, {.left = {1, 1}}),
      Case("MobileNet", {1, 3, 32, 32}, 32, {3, 3}, {.strides = {2, 2}, .left = {1, 1}}),
      Case("AlexNet", {1, 3, 31, 63}, 96, {11, 11}, {.strides = {4, 4}}),
      Case("grey", {1, 1, 28, 28}, 20, {5, 5}),
      Case("two channels, a pixel", {1, 2, 4, 4}, 16, {1, 1}),
      Case("four channels, dilated", {1, 4, 20, 21}, 17, {3, 3},
           {.dilations = {1, 1}, .left = {2, 2}}),
  };
  const Attributes attributes = AttributesOf({Eltwise(EltwiseAlgorithm::kRelu)});
  for (const ConvolutionCase& shape : shapes) {
    SCOPED_TRACE(shape.why);
    ExpectMatches(shape, attributes, "abcd");
    const auto nchw = Create(shape, attributes, "abcd"), nhwc = Create(shape, attributes, "acdb");
    if (nchw == nullptr) continue;
    const Contents contents = RandomContents(shape);
    EXPECT_EQ(Execute(*nchw, contents, Team::Serial()), Execute(*nhwc, contents, Team::Serial()));
  }
}

TEST_P(ConvolutionTest, PartsOfLargerTensorsGiveTheBitsOfTensorsOfTheirOwn) {
  for (ConvolutionCase shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    shape.batch = 2;
    Attributes attributes = AttributesOf({SumPostOp{}, Eltwise(EltwiseAlgorithm::kRelu)});
    attributes.precision = GetParam().traits.precision;
    const auto dense = Create(shape, attributes);
    if (dense == nullptr) continue;
    ASSERT_OK_AND_ASSIGN(const auto parts, CreateConvolution(InLargerTensors(DescOf(shape), *dense),
                                                             attributes, OnlyTheRow()));
    const Contents contents = RandomContents(shape);
    EXPECT_EQ(Execute(*parts, contents, Team::Serial()), Execute(*dense, contents, Team::Serial()));
  }
}

TEST_P(ConvolutionTest, ThreadsAndBatchDoNotChangeABit) {
  threading::Arena arena(2);
  for (const ConvolutionCase& shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    ConvolutionCase three = shape, one = shape;
    three.batch = 3;
    one.batch = 1;
    const Attributes attributes = AttributesOf({Eltwise(EltwiseAlgorithm::kRelu)});
    const auto batch_of_three = Create(three, attributes), batch_of_one = Create(one, attributes);
    if (batch_of_three == nullptr) continue;
    const Contents contents = RandomContents(three);
    const std::vector<float> result = Execute(*batch_of_three, contents, Team::Serial());
    EXPECT_EQ(result, Execute(*batch_of_three, contents, Team(&arena)));
    Contents first = contents;
    first.src.resize(contents.src.size() / 3);
    first.dst.resize(contents.dst.size() / 3);
    EXPECT_EQ(std::vector<float>(result.begin(), result.begin() + first.dst.size()),
              Execute(*batch_of_one, first, Team(&arena)));
  }
}

TEST_P(ConvolutionTest, InfinityDoesNotReachTheTail) {
  const ConvolutionCase shape = Case("", {1, 16, 3, 3}, 17, {1, 1});
  const auto primitive = Create(shape, AttributesOf({}));
  if (primitive == nullptr) return;
  Contents contents = RandomContents(shape);
  std::fill(contents.src.begin(), contents.src.end(), HUGE_VALF);
  bool tail_is_zero = false;
  Execute(*primitive, contents, Team::Serial(), &tail_is_zero);
  EXPECT_TRUE(tail_is_zero);
}

// Lanes of other groups are left out, and not multiplied by zeros.
TEST_P(ConvolutionTest, InfinityStaysInItsGroup) {
  for (const ConvolutionCase& shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    const auto primitive = shape.groups > 1 ? Create(shape, AttributesOf({})) : nullptr;
    if (primitive == nullptr) continue;
    Contents contents = RandomContents(shape);
    const size_t src_group = contents.src.size() / shape.batch / shape.groups;
    const size_t dst_group = contents.dst.size() / shape.batch / shape.groups;
    std::fill_n(contents.src.begin() + src_group, src_group, HUGE_VALF);
    const std::vector<float> result = Execute(*primitive, contents, Team::Serial());
    for (size_t i = 0; i < result.size(); ++i)
      ASSERT_TRUE(i / dst_group == 1 || std::isfinite(result[i])) << "element " << i;
  }
}

TEST(WeightsAheadTest, GoesFromStretchToStretchAndThenStaysNear) {
  const std::vector<std::byte> weights(100);
  const std::byte *begin = weights.data(), *near = begin + 90;
  convolution::WeightsPrefetch ahead(begin, /*stretch=*/10, /*distance=*/30, /*stretches=*/2,
                                     /*skipped=*/4);
  EXPECT_EQ(ahead.begin(), begin + 4);
  EXPECT_EQ(ahead.Next(begin + 9, near), begin + 9) << "the stretch has not ended";
  EXPECT_EQ(ahead.Next(begin + 11, near), begin + 31) << "one of the next is asked for already";
  EXPECT_EQ(ahead.Next(begin + 40, near), near);
  EXPECT_EQ(ahead.Next(near + 5, near), near);
  EXPECT_EQ(convolution::WeightsPrefetch().Next(nullptr, near), near);
}

// The layers of ResNet and of other networks do not fall back to the reference.
TEST(ConvolutionDispatchTest, NoShapeFallsBackToTheReference) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (const ConvolutionCase& shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::BestIsa()}) {
      const auto primitive = CreateConvolution(DescOf(shape), AttributesOf({}), {.max_isa = isa});
      ASSERT_TRUE(primitive.ok()) << primitive.status();
      EXPECT_FALSE((*primitive)->info().traits.is_reference);
      EXPECT_GT((*primitive)->info().code_bytes, 0);
    }
  }
}

// A long sum of one tap, whose weights go through the first cache in parts, is one chain all the
// same, as it is for so few pixels that parts would gain nothing.
TEST(ConvolutionChunksTest, GiveTheBitsOfOneChain) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  constexpr int64_t kChannels = 700, kOutputs = 24, kRows = 5, kColumns = 13;
  const ConvolutionCase whole = Case("", {1, kChannels, kRows, kColumns}, kOutputs, {1, 1});
  const ConvolutionCase part = Case("", {1, kChannels, kRows, 1}, kOutputs, {1, 1});
  const auto first_column = [](const std::vector<float>& values) {
    std::vector<float> column;
    for (size_t i = 0; i < values.size(); i += kColumns) column.push_back(values[i]);
    return column;
  };
  Contents contents = RandomContents(whole), of_part = contents;
  of_part.src = first_column(contents.src);
  of_part.dst = first_column(contents.dst);
  for (const PostOpsCase& post_ops : PostOpsCases()) {
    SCOPED_TRACE(post_ops.why);
    const auto run = [&](const ConvolutionCase& shape, const Contents& from) {
      return Execute(**CreateConvolution(DescOf(shape), AttributesOf(post_ops.chain),
                                         {.only = "convolution/avx2_f32_direct"}),
                     from, Team::Serial());
    };
    EXPECT_EQ(first_column(run(whole, contents)), run(part, of_part));
  }
}

struct WidthCase {
  ConvolutionCase shape;
  const char* row;  // of AVX-512
};

// Narrow groups are read and written where they lie, and need no memory for copies.
TEST(ConvolutionDispatchTest, GroupsTakeTheRowOfTheirWidth) {
  if (!cpu::Supports(cpu::Isa::kAvx512)) GTEST_SKIP() << "the CPU lacks AVX-512";
  const Dims three = {3, 3}, one = {1, 1}, pad = {1, 1};
  const WidthCase cases[] = {
      {Case("a multiplier", {1, 66, 40, 40}, 264, three, {.groups = 66, .left = pad}),
       "f32_grouped"},
      {Case("a multiplier, 1x1", {1, 66, 40, 40}, 264, one, {.groups = 66}), "f32_grouped"},
      {Case("four to four", {1, 264, 40, 40}, 264, three, {.groups = 66, .left = pad}),
       "f32_grouped"},
      {Case("four to one", {1, 264, 40, 40}, 66, one, {.groups = 66}), "f32_grouped"},
      {Case("128 to one", {1, 256, 40, 40}, 2, three, {.groups = 2, .left = pad}),
       "f32_few_outputs"},
      {Case("16 to one", {1, 272, 40, 40}, 17, one, {.groups = 17}), "f32_few_outputs"},
      {Case("whole blocks", {1, 64, 40, 40}, 64, three, {.groups = 2, .left = pad}), "f32_direct"},
  };
  for (const WidthCase& one_case : cases) {
    SCOPED_TRACE(one_case.shape.why);
    const auto primitive =
        CreateConvolution(DescOf(one_case.shape), AttributesOf({}), {.max_isa = cpu::Isa::kAvx512});
    ASSERT_THAT(primitive, IsOk());
    EXPECT_TRUE(absl::EndsWith((*primitive)->name(), one_case.row)) << (*primitive)->name();
    EXPECT_EQ((*primitive)->info().scratchpad_bytes, 0);
  }
  const auto wide =
      CreateConvolution(DescOf(Case("wide", {1, 400, 20, 20}, 400, one, {.groups = 2})),
                        AttributesOf({}), {.max_isa = cpu::Isa::kAvx512});
  ASSERT_THAT(wide, IsOk());
  EXPECT_TRUE(absl::EndsWith((*wide)->name(), "f32_direct")) << (*wide)->name();
}

// Winograd's are neither exact on integers nor within an element's bound: winograd_test.cc is
// theirs.
// bf16_tensors_test.cc has those that write bf16 alone, reordered_test.cc the one between reorders.
std::vector<Implementation<ConvolutionDesc>> DirectRows() {
  std::vector<Implementation<ConvolutionDesc>> rows;
  for (const Implementation<ConvolutionDesc>& row : FloatRows(ConvolutionImplementations())) {
    const bool writes_bf16 =
        row.isa == cpu::Isa::kAvx512Bf16 && row.traits.precision == Precision::kExact;
    if (!row.traits.bits_depend_on_position && !writes_bf16 && !row.traits.runs_another)
      rows.push_back(row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, ConvolutionTest, ValuesIn(DirectRows()),
                         RowName<Implementation<ConvolutionDesc>>);

}  // namespace
}  // namespace tilewire::testing
