// SPDX-License-Identifier: Apache-2.0
//
// The depthwise rows whose lanes are pixels: against the reference, and for the bits of the blocked
// depthwise convolution.
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"
#include "tests/engine/primitives/row_name.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using ::testing::TestWithParam;
using threading::Team;

ConvolutionCase DepthwiseCase(const char* why, const Dims& src, const Dims& kernel,
                              CaseOptions options = {}) {
  options.groups = src[1];
  return Case(why, src, src[1], kernel, options);
}

// Rows of every length around those of vectors, so that each edge meets each kind of tile.
std::vector<ConvolutionCase> RowsOfEveryLength() {
  std::vector<ConvolutionCase> cases;
  for (int64_t width = 4; width <= 50; ++width) {
    cases.push_back(DepthwiseCase("3x3", {1, 3, 9, width}, {3, 3}, {.left = {1, 1}}));
    cases.push_back(DepthwiseCase("5x5, stride 2", {1, 3, 11, 2 * width}, {5, 5},
                                  {.strides = {2, 2}, .left = {2, 2}}));
    cases.push_back(DepthwiseCase("3x3, stride 2, padding on one side", {1, 3, 8, 2 * width},
                                  {3, 3}, {.strides = {2, 2}, .left = {0, 0}, .right = {1, 1}}));
  }
  return cases;
}

std::vector<ConvolutionCase> Cases() {
  std::vector<ConvolutionCase> cases = {
      DepthwiseCase("more channels than a block of weights", {2, 35, 7, 7}, {3, 3},
                    {.left = {1, 1}}),
      DepthwiseCase("several bands alike", {1, 3, 53, 20}, {3, 3}, {.left = {1, 1}}),
      DepthwiseCase("several columns alike", {1, 3, 5, 150}, {3, 3}, {.left = {1, 1}}),
      DepthwiseCase("several columns alike, stride 2", {1, 3, 5, 300}, {3, 3},
                    {.strides = {2, 2}, .left = {1, 1}}),
      DepthwiseCase("no padding", {1, 5, 12, 19}, {3, 3}),
      DepthwiseCase("one tap", {1, 5, 4, 33}, {1, 1}),
      DepthwiseCase("one tap, stride 2", {1, 5, 9, 65}, {1, 1}, {.strides = {2, 2}}),
      DepthwiseCase("5x5", {2, 17, 14, 14}, {5, 5}, {.left = {2, 2}}),
      DepthwiseCase("7x7", {1, 9, 10, 28}, {7, 7}, {.left = {3, 3}}),
      DepthwiseCase("more masks than registers: 9x9 in short rows", {1, 2, 6, 6}, {9, 9},
                    {.left = {4, 4}}),
      DepthwiseCase("an even kernel", {1, 6, 9, 21}, {4, 2}, {.left = {1, 0}, .right = {2, 1}}),
      DepthwiseCase("dilated", {1, 4, 17, 23}, {3, 3}, {.dilations = {1, 2}, .left = {2, 3}}),
      DepthwiseCase("dilated, stride 2", {1, 4, 17, 40}, {3, 3},
                    {.strides = {2, 2}, .dilations = {1, 1}, .left = {2, 2}}),
      DepthwiseCase("rows of src that no tap reads", {1, 4, 25, 18}, {2, 3},
                    {.strides = {4, 1}, .left = {0, 1}}),
      DepthwiseCase("padding wider than the kernel", {1, 3, 4, 5}, {3, 3}, {.left = {5, 6}}),
      DepthwiseCase("one spatial dimension", {2, 6, 45}, {5}, {.left = {2}}),
      DepthwiseCase("one spatial dimension, stride 2, no bias", {2, 6, 45}, {3},
                    {.strides = {2}, .left = {1}, .bias = false}),
  };
  for (ConvolutionCase& shape : RowsOfEveryLength()) cases.push_back(std::move(shape));
  return cases;
}

class DepthwiseNchwTest : public TestWithParam<Implementation<ConvolutionDesc>> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(GetParam().isa))
      GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(GetParam().isa);
  }

  static ConvolutionDesc PlainDesc(const ConvolutionCase& shape) {
    const std::string nchw = std::string("abcd").substr(0, shape.in.size() + 2);
    return DescOf(shape, nchw, nchw);
  }

  static std::shared_ptr<const Primitive> Create(const ConvolutionDesc& desc,
                                                 const Attributes& attributes,
                                                 const CreateOptions& options) {
    auto primitive = CreateConvolution(desc, attributes, options);
    EXPECT_TRUE(primitive.ok()) << primitive.status();
    return primitive.ok() ? *primitive : nullptr;
  }

  static std::vector<float> Result(const ConvolutionCase& shape, const Contents& contents,
                                   const Attributes& attributes) {
    const auto row = Create(PlainDesc(shape), attributes, {.only = GetParam().name});
    return row == nullptr ? std::vector<float>() : Execute(*row, contents, Team::Serial());
  }

  static void ExpectBitsOfBlocks(const ConvolutionCase& shape, const Attributes& attributes) {
    SCOPED_TRACE(shape.why);
    const Contents contents = RandomContents(shape);
    const auto blocked = Create(DescOf(shape), attributes, {.max_isa = GetParam().isa});
    EXPECT_EQ(Result(shape, contents, attributes), Execute(*blocked, contents, Team::Serial()))
        << "src " << ::testing::PrintToString(shape.SrcDims());
  }
};

TEST_P(DepthwiseNchwTest, IsExactOnIntegers) {
  const Attributes attributes = AttributesOf({SumPostOp{}});
  for (const ConvolutionCase& shape : Cases()) {
    SCOPED_TRACE(shape.why);
    const auto reference = Create(DescOf(shape), attributes, {.reference_only = true});
    const Contents contents = IntegerContents(shape);
    EXPECT_EQ(Result(shape, contents, attributes), Execute(*reference, contents, Team::Serial()))
        << "src " << ::testing::PrintToString(shape.SrcDims());
  }
}

TEST_P(DepthwiseNchwTest, GivesTheBitsOfChannelBlocks) {
  for (const ConvolutionCase& shape : Cases()) ExpectBitsOfBlocks(shape, AttributesOf({}));
}

TEST_P(DepthwiseNchwTest, AppliesPostOpsInOrder) {
  const EltwisePostOp relu = {.op = {.algorithm = EltwiseAlgorithm::kRelu}};
  const EltwisePostOp elu = {.op = {.algorithm = EltwiseAlgorithm::kElu, .alpha = 0.5f},
                             .scale = 2};
  const EltwisePostOp gelu = {.op = {.algorithm = EltwiseAlgorithm::kGeluErf}};
  for (const ConvolutionCase& shape :
       {DepthwiseCase("whole vectors and a tail", {1, 19, 9, 39}, {3, 3}, {.left = {1, 1}}),
        DepthwiseCase("short rows, stride 2", {2, 5, 7, 13}, {3, 3},
                      {.strides = {2, 2}, .left = {1, 1}})}) {
    PReluPostOp prelu;
    for (int64_t c = 0; c < shape.oc; ++c) prelu.slopes.push_back(static_cast<float>(c % 5) - 1);
    ExpectBitsOfBlocks(shape, AttributesOf({relu}));
    ExpectBitsOfBlocks(shape, AttributesOf({SumPostOp{.scale = 0.5f}, elu}));
    ExpectBitsOfBlocks(shape, AttributesOf({gelu, SumPostOp{}}));
    ExpectBitsOfBlocks(shape, AttributesOf({prelu, SumPostOp{.scale = -2}, relu}));
  }
}

// Zeros in place of the padding would make NaN of an infinite weight.
TEST_P(DepthwiseNchwTest, InfiniteWeightsDoNotMeetThePadding) {
  for (const ConvolutionCase& shape :
       {DepthwiseCase("stride 1", {1, 3, 5, 21}, {3, 3}, {.left = {1, 1}}),
        DepthwiseCase("stride 2", {1, 3, 6, 42}, {3, 3}, {.strides = {2, 2}, .left = {1, 1}})}) {
    SCOPED_TRACE(shape.why);
    Contents contents = Magnitudes(IntegerContents(shape));
    for (float& value : contents.src) value += 1;
    for (float& weight : contents.weights) weight = HUGE_VALF;
    for (const float value : Result(shape, contents, AttributesOf({}))) EXPECT_EQ(value, HUGE_VALF);
  }
}

TEST_P(DepthwiseNchwTest, ReadsAndWritesPartsOfLargerTensors) {
  for (const ConvolutionCase& shape : Cases()) {
    SCOPED_TRACE(shape.why);
    const Attributes attributes = AttributesOf({SumPostOp{}});
    const CreateOptions only = {.only = GetParam().name};
    const auto dense = Create(PlainDesc(shape), attributes, only);
    const auto parts = Create(InLargerTensors(PlainDesc(shape), *dense), attributes, only);
    const Contents contents = RandomContents(shape);
    EXPECT_EQ(Execute(*parts, contents, Team::Serial()), Execute(*dense, contents, Team::Serial()));
  }
}

TEST_P(DepthwiseNchwTest, ThreadsAndBatchDoNotChangeABit) {
  threading::Arena arena(2);
  ConvolutionCase three = DepthwiseCase("", {3, 21, 9, 17}, {3, 3}, {.left = {1, 1}}), one = three;
  one.batch = 1;
  const CreateOptions only = {.only = GetParam().name};
  const auto of_three = Create(PlainDesc(three), AttributesOf({}), only);
  const auto of_one = Create(PlainDesc(one), AttributesOf({}), only);
  const Contents contents = RandomContents(three);
  const std::vector<float> result = Execute(*of_three, contents, Team::Serial());
  EXPECT_EQ(result, Execute(*of_three, contents, Team(&arena)));
  Contents first = contents;
  first.src.resize(contents.src.size() / 3);
  first.dst.resize(contents.dst.size() / 3);
  EXPECT_EQ(std::vector<float>(result.begin(), result.begin() + first.dst.size()),
            Execute(*of_one, first, Team(&arena)));
}

// A caller of nchw gets the row without asking for it.
TEST_P(DepthwiseNchwTest, IsChosenForPlainRowsOnly) {
  const CreateOptions best = {.max_isa = GetParam().isa};
  const ConvolutionCase shape = DepthwiseCase("", {1, 32, 14, 14}, {3, 3}, {.left = {1, 1}});
  EXPECT_EQ(Create(PlainDesc(shape), AttributesOf({}), best)->name(), GetParam().name);
  for (const ConvolutionDesc& other :
       {DescOf(shape), DescOf(shape, "acdb", "acdb"), DescOf(shape, "abcd", "acdb"),
        PlainDesc(DepthwiseCase("", {1, 32, 3, 3}, {3, 3}, {.left = {1, 1}})),
        PlainDesc(DepthwiseCase("", {1, 32, 15, 15}, {3, 3}, {.strides = {1, 3}}))}) {
    EXPECT_NE(Create(other, AttributesOf({}), best)->name(), GetParam().name);
  }
}

std::vector<Implementation<ConvolutionDesc>> DepthwiseNchwRows() {
  std::vector<Implementation<ConvolutionDesc>> rows;
  for (const Implementation<ConvolutionDesc>& row : ConvolutionImplementations()) {
    if (row.traits.algorithm == convolution::kDepthwiseNchw) rows.push_back(row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, DepthwiseNchwTest,
                         ::testing::ValuesIn(DepthwiseNchwRows()),
                         RowName<Implementation<ConvolutionDesc>>);

}  // namespace
}  // namespace tilewire::testing
