// SPDX-License-Identifier: Apache-2.0
//
// Convolutions whose weights lie in a layout that is named: they give the bits of those that a
// caller packs, and the numbers of the reference.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using threading::Team;

// oihw, hwio and the like, with groups first.
std::vector<std::string> WeightsLayouts(const ConvolutionCase& shape) {
  const std::string all = std::string("abcdef").substr(0, shape.WeightsDims().size());
  const size_t channels = all.size() - shape.in.size();
  const std::string groups = all.substr(0, channels - 2);
  return {all, groups + all.substr(channels) + all[channels - 1] + all[channels - 2]};
}

// Open, nchw and nhwc with as many spatial dimensions.
std::vector<std::string> ImageLayouts(const ConvolutionCase& shape) {
  const std::string spatial = std::string("cde").substr(0, shape.in.size());
  return {"", "ab" + spatial, "a" + spatial + "b"};
}

ConvolutionDesc WithWeights(ConvolutionDesc desc, absl::string_view pattern) {
  desc.weights = *MemoryDesc::CreatePattern(desc.weights.dims(), desc.weights.data_type(), pattern);
  return desc;
}

class ReorderedConvolutionTest : public ::testing::TestWithParam<cpu::Isa> {
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

  void ExpectBitsOfPacked(const ConvolutionCase& shape, const Attributes& attributes) const {
    SCOPED_TRACE(shape.why);
    const Contents contents = RandomContents(shape);
    for (const std::string& images : ImageLayouts(shape)) {
      const ConvolutionDesc desc = DescOf(shape, images, images);
      const auto packed = Create(desc, attributes);
      ASSERT_NE(packed, nullptr);
      const std::vector<float> expected = Execute(*packed, contents, Team::Serial());
      for (const std::string& weights : WeightsLayouts(shape)) {
        SCOPED_TRACE(absl::StrCat("images ", images, ", weights ", weights));
        const auto named = Create(WithWeights(desc, weights), attributes);
        ASSERT_NE(named, nullptr);
        EXPECT_EQ(named->name(), "convolution/reordered");
        EXPECT_EQ(named->Desc(kArgSrc), packed->Desc(kArgSrc));
        EXPECT_EQ(Execute(*named, contents, Team::Serial()), expected);
      }
    }
  }
};

TEST_P(ReorderedConvolutionTest, GivesTheBitsOfPackedWeights) {
  for (const ConvolutionCase& shape : ConvolutionCases())
    ExpectBitsOfPacked(shape, AttributesOf({}));
}

TEST_P(ReorderedConvolutionTest, AppliesPostOps) {
  const EltwisePostOp relu = {.op = {.function = EltwiseAlgorithm::kRelu}};
  const ConvolutionCase shapes[] = {
      Case("a Winograd convolution", {3, 64, 20, 22}, 64, {3, 3}, {.left = {1, 1}}),
      Case("tails", {2, 35, 6, 17}, 40, {3, 3}, {.left = {1, 1}}),
      Case("groups", {2, 24, 5, 5}, 24, {3, 3}, {.groups = 3, .left = {1, 1}}),
      Case("depthwise", {2, 28, 9, 30}, 28, {3, 3}, {.groups = 28, .left = {1, 1}}),
      Case("a first layer", {2, 3, 15, 17}, 32, {3, 3}, {.left = {1, 1}}),
  };
  for (const ConvolutionCase& shape : shapes) {
    ExpectBitsOfPacked(shape, AttributesOf({SumPostOp{.scale = 0.5f}, relu}));
    PReluPostOp prelu;
    for (int64_t c = 0; c < shape.oc; ++c) prelu.slopes.push_back(static_cast<float>(c % 5) - 1);
    ExpectBitsOfPacked(shape, AttributesOf({prelu, SumPostOp{}}, ScratchpadMode::kLibrary));
  }
}

TEST_P(ReorderedConvolutionTest, RoundsWeightsToBf16WhereItMay) {
  Attributes attributes = AttributesOf({});
  attributes.precision = Precision::kBf16;
  ExpectBitsOfPacked(Case("dense", {2, 35, 6, 17}, 40, {3, 3}, {.left = {1, 1}}), attributes);
  ExpectBitsOfPacked(Case("groups", {1, 64, 6, 17}, 64, {3, 3}, {.groups = 2}), attributes);
  ExpectBitsOfPacked(Case("a first layer", {1, 3, 15, 17}, 32, {3, 3}, {.strides = {2, 2}}),
                     attributes);
}

TEST_P(ReorderedConvolutionTest, GivesTheNumbersOfTheReference) {
  const Attributes attributes = AttributesOf({SumPostOp{}});
  for (const ConvolutionCase& shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    const std::string images = ImageLayouts(shape)[1];
    ConvolutionDesc desc = WithWeights(DescOf(shape, images, images), WeightsLayouts(shape)[0]);
    desc.algorithm = ConvolutionAlgorithm::kDirect;  // exact on integers
    const auto named = Create(desc, attributes);
    const auto reference = *CreateConvolution(desc, attributes, {.reference_only = true});
    const Contents contents = IntegerContents(shape);
    EXPECT_EQ(Execute(*named, contents, Team::Serial()),
              Execute(*reference, contents, Team::Serial()));
  }
}

TEST_P(ReorderedConvolutionTest, ThreadsAndBatchDoNotChangeABit) {
  threading::Arena arena(2);
  for (ConvolutionCase shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    shape.batch = 3;
    ConvolutionCase one = shape;
    one.batch = 1;
    const Contents contents = RandomContents(shape);
    Contents first = contents;
    first.src.resize(contents.src.size() / 3);
    first.dst.resize(contents.dst.size() / 3);
    for (const std::string& images : ImageLayouts(shape)) {
      const std::string weights = WeightsLayouts(shape)[0];
      const auto three =
          Create(WithWeights(DescOf(shape, images, images), weights), AttributesOf({SumPostOp{}}));
      const auto single =
          Create(WithWeights(DescOf(one, images, images), weights), AttributesOf({SumPostOp{}}));
      const std::vector<float> result = Execute(*three, contents, Team::Serial());
      EXPECT_EQ(result, Execute(*three, contents, Team(&arena)));
      EXPECT_EQ(std::vector<float>(result.begin(), result.begin() + first.dst.size()),
                Execute(*single, first, Team(&arena)));
    }
  }
}

// Copies would need more memory than the caller has.
TEST_P(ReorderedConvolutionTest, LeavesOverlappingWeightsToTheReference) {
  ConvolutionDesc desc = DescOf(Case("", {1, 32, 5, 5}, 32, {3, 3}));
  desc.weights = *MemoryDesc::CreateStrided({32, 32, 3, 3}, DataType::kF32, {0, 0, 0, 0});
  EXPECT_EQ(Create(desc, AttributesOf({}))->name(), "convolution/reference");
}

INSTANTIATE_TEST_SUITE_P(Isas, ReorderedConvolutionTest,
                         ::testing::Values(cpu::Isa::kAvx2, cpu::Isa::kAvx512,
                                           cpu::Isa::kAvx512Bf16),
                         [](const auto& isa) { return std::string(cpu::IsaName(isa.param)); });

}  // namespace
}  // namespace tilewire::testing
