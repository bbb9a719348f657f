// SPDX-License-Identifier: Apache-2.0
//
// Convolutions from and to plain tensors, by the rows that a caller gets for them: they give the
// bits of the convolution between channel blocks, and so those of its row.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using threading::Team;

// nchw and nhwc with as many spatial dimensions.
std::string ChannelsFirst(const ConvolutionCase& shape) {
  return std::string("abcde").substr(0, shape.in.size() + 2);
}
std::string ChannelsLast(const ConvolutionCase& shape) {
  return "a" + std::string("cde").substr(0, shape.in.size()) + "b";
}

class PlainConvolutionTest : public ::testing::TestWithParam<cpu::Isa> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(GetParam())) GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(GetParam());
  }

  std::shared_ptr<const Primitive> Create(const ConvolutionDesc& desc,
                                          const Attributes& attributes) const {
    auto primitive = CreateConvolution(desc, attributes, {.max_isa = GetParam()});
    EXPECT_TRUE(primitive.ok()) << primitive.status();
    return primitive.ok() ? *primitive : nullptr;
  }

  // Every pair of layouts but two of channel blocks.
  static std::vector<std::pair<std::string, std::string>> Layouts(const ConvolutionCase& shape) {
    const std::string first = ChannelsFirst(shape), last = ChannelsLast(shape);
    return {{first, first}, {last, last}, {first, last}, {last, first},
            {first, ""},    {last, ""},   {"", first},   {"", last}};
  }

  void ExpectBitsOfBlocks(const ConvolutionCase& shape, const Attributes& attributes) const {
    SCOPED_TRACE(shape.why);
    const Contents contents = RandomContents(shape);
    const auto blocked = Create(DescOf(shape), attributes);
    ASSERT_NE(blocked, nullptr);
    const std::vector<float> expected = Execute(*blocked, contents, Team::Serial());
    for (const auto& [src, dst] : Layouts(shape)) {
      SCOPED_TRACE(absl::StrCat("src ", src, ", dst ", dst));
      const auto plain = Create(DescOf(shape, src, dst), attributes);
      ASSERT_NE(plain, nullptr);
      EXPECT_FALSE(plain->info().traits.is_reference) << plain->name();
      EXPECT_EQ(plain->Desc(kArgWeights), blocked->Desc(kArgWeights)) << plain->name();
      EXPECT_EQ(Execute(*plain, contents, Team::Serial()), expected) << plain->name();
    }
  }
};

TEST_P(PlainConvolutionTest, GivesTheBitsOfChannelBlocks) {
  for (const ConvolutionCase& shape : ConvolutionCases())
    ExpectBitsOfBlocks(shape, AttributesOf({}));
}

TEST_P(PlainConvolutionTest, AppliesPostOpsToWhatTheDestinationHeld) {
  const EltwisePostOp relu = {.op = {.function = EltwiseAlgorithm::kRelu}};
  const ConvolutionCase shapes[] = {
      Case("a Winograd convolution", {3, 64, 20, 22}, 64, {3, 3}, {.left = {1, 1}}),
      Case("tails", {2, 35, 6, 17}, 40, {3, 3}, {.left = {1, 1}}),
      Case("whole vectors", {2, 32, 6, 17}, 48, {1, 1}),
      Case("groups", {2, 24, 5, 5}, 24, {3, 3}, {.groups = 3, .left = {1, 1}}),
      Case("depthwise", {2, 32, 9, 30}, 32, {3, 3}, {.groups = 32, .left = {1, 1}}),
      Case("depthwise, a long tail", {2, 28, 9, 30}, 28, {3, 3}, {.groups = 28, .left = {1, 1}}),
      Case("depthwise, a short tail", {2, 19, 9, 30}, 19, {3, 3}, {.groups = 19, .left = {1, 1}}),
      Case("a first layer", {2, 3, 15, 17}, 32, {3, 3}, {.left = {1, 1}}),
  };
  for (const ConvolutionCase& shape : shapes) {
    ExpectBitsOfBlocks(shape, AttributesOf({SumPostOp{.scale = 0.5f}, relu}));
    PReluPostOp prelu;
    for (int64_t c = 0; c < shape.oc; ++c) prelu.slopes.push_back(static_cast<float>(c % 5) - 1);
    ExpectBitsOfBlocks(shape, AttributesOf({prelu, SumPostOp{}}, ScratchpadMode::kLibrary));
  }
}

TEST_P(PlainConvolutionTest, ThreadsAndBatchDoNotChangeABit) {
  threading::Arena arena(2);
  for (ConvolutionCase shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    shape.batch = 6;
    ConvolutionCase one = shape;
    one.batch = 1;
    const Contents contents = RandomContents(shape);
    Contents first = contents;
    first.src.resize(contents.src.size() / 6);
    first.dst.resize(contents.dst.size() / 6);
    for (const std::string& pattern : {ChannelsFirst(shape), ChannelsLast(shape)}) {
      const auto six = Create(DescOf(shape, pattern, pattern), AttributesOf({SumPostOp{}}));
      const auto single = Create(DescOf(one, pattern, pattern), AttributesOf({SumPostOp{}}));
      const std::vector<float> result = Execute(*six, contents, Team::Serial());
      EXPECT_EQ(result, Execute(*six, contents, Team(&arena)));
      EXPECT_EQ(std::vector<float>(result.begin(), result.begin() + first.dst.size()),
                Execute(*single, first, Team(&arena)));
    }
  }
}

TEST_P(PlainConvolutionTest, ReadsAndWritesPartsOfLargerTensors) {
  const ConvolutionCase shapes[] = {
      Case("a Winograd convolution", {2, 64, 20, 22}, 64, {3, 3}, {.left = {1, 1}}),
      Case("tails", {2, 35, 6, 17}, 40, {3, 3}, {.left = {1, 1}}),
      Case("whole vectors", {2, 32, 6, 17}, 48, {1, 1}),
      Case("depthwise", {2, 32, 9, 30}, 32, {3, 3}, {.groups = 32, .left = {1, 1}}),
      Case("depthwise, a long tail", {2, 28, 9, 30}, 28, {3, 3}, {.groups = 28, .left = {1, 1}}),
      Case("depthwise, a short tail", {2, 19, 9, 30}, 19, {3, 3}, {.groups = 19, .left = {1, 1}}),
  };
  for (const ConvolutionCase& shape : shapes) {
    SCOPED_TRACE(shape.why);
    const Contents contents = RandomContents(shape);
    for (const std::string& pattern : {ChannelsFirst(shape), ChannelsLast(shape)}) {
      const ConvolutionDesc desc = DescOf(shape, pattern, pattern);
      const auto dense = Create(desc, AttributesOf({SumPostOp{}}));
      const auto parts = Create(InLargerTensors(desc, *dense), AttributesOf({SumPostOp{}}));
      EXPECT_FALSE(parts->info().traits.is_reference);
      EXPECT_EQ(Execute(*parts, contents, Team::Serial()),
                Execute(*dense, contents, Team::Serial()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, PlainConvolutionTest,
                         ::testing::Values(cpu::Isa::kAvx2, cpu::Isa::kAvx512),
                         [](const auto& isa) { return std::string(cpu::IsaName(isa.param)); });

}  // namespace
}  // namespace tilewire::testing
