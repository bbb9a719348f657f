// SPDX-License-Identifier: Apache-2.0
//
// The rows of deconvolution that compute gradients.
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/primitives/deconvolution/deconvolution.h"
#include "tests/engine/primitives/batched_gradient_test.h"

namespace tilewire::testing {
namespace {

struct SpreadShape {
  const char* why;
  Dims src;  // [N, C, spatial...]
  int64_t oc;
  Dims kernel, strides, dilations, left, right;
  int64_t groups = 1;
};

std::vector<SpreadShape> SpreadShapes() {
  std::vector<SpreadShape> shapes = {
      {"one pixel becomes the kernel", {1, 1, 1, 1}, 1, {3, 2}, {1, 1}, {0, 0}, {0, 0}, {0, 0}},
      {"upsampling", {2, 32, 3, 5}, 16, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {0, 0}},
      {"4x4, stride 2", {3, 24, 4, 4}, 40, {4, 4}, {2, 2}, {0, 0}, {1, 1}, {1, 1}},
      {"kernel smaller than the stride", {1, 3, 4, 5}, 5, {1, 2}, {3, 4}, {0, 0}, {0, 0}, {0, 0}},
      {"paddings that differ", {2, 8, 5, 6}, 24, {5, 3}, {2, 3}, {0, 0}, {2, 0}, {1, 1}},
      {"dilated", {1, 16, 6, 7}, 16, {3, 3}, {2, 1}, {1, 2}, {1, 2}, {2, 1}},
      {"groups", {2, 6, 4, 4}, 8, {3, 3}, {2, 2}, {0, 0}, {1, 1}, {0, 0}, 2},
      {"depthwise", {1, 19, 4, 6}, 19, {4, 4}, {2, 2}, {0, 0}, {1, 1}, {1, 1}, 19},
      {"one dimension", {2, 20, 11}, 18, {4}, {3}, {0}, {1}, {0}},
      {"three dimensions", {1, 5, 3, 2, 4}, 6, {2, 3, 2}, {2, 1, 2}, Dims(3), {0, 1, 0}, {0, 1, 1}},
      {"no image", {0, 4, 2, 2}, 4, {2, 2}, {2, 2}, {0, 0}, {0, 0}, {0, 0}},
  };
  for (int64_t channels : {1, 3, 15, 16, 17, 48}) {
    shapes.push_back({"channels around blocks",
                      {2, channels, 4, 5},
                      17,
                      {3, 3},
                      {2, 2},
                      {0, 0},
                      {1, 1},
                      {1, 1}});
  }
  return shapes;
}

GradientCase<DeconvolutionDesc> SpreadCase(const SpreadShape& shape) {
  Dims dst = {shape.src[0], shape.oc};
  Dims weights = {shape.oc / shape.groups, shape.src[1] / shape.groups};
  if (shape.groups > 1) weights.insert(weights.begin(), shape.groups);
  for (size_t i = 0; i < shape.kernel.size(); ++i) {
    weights.push_back(shape.kernel[i]);
    dst.push_back((shape.src[2 + i] - 1) * shape.strides[i] +
                  (shape.kernel[i] - 1) * (shape.dilations[i] + 1) + 1 - shape.left[i] -
                  shape.right[i]);
  }
  const auto any = [](const Dims& dims) { return *MemoryDesc::CreateAny(dims, DataType::kF32); };
  DeconvolutionDesc desc;
  desc.src = any(shape.src);
  desc.weights = any(weights);
  desc.bias = any({shape.oc});
  desc.dst = any(dst);
  desc.strides = shape.strides;
  desc.dilations = shape.dilations;
  desc.padding_left = shape.left;
  desc.padding_right = shape.right;
  return {shape.why, desc,
          DeconvolutionProducts({shape.src, dst, shape.kernel, shape.groups, shape.strides,
                                 shape.dilations, shape.left})};
}

class DeconvolutionBackwardTest : public BatchedGradientTest<DeconvolutionDesc> {
 protected:
  DeconvolutionBackwardTest() : BatchedGradientTest(CreateDeconvolution) {}
};

TEST_P(DeconvolutionBackwardTest, IsTheOraclesGradient) {
  for (const SpreadShape& shape : SpreadShapes()) {
    for (bool integers : {true, false}) Check(SpreadCase(shape), integers);
  }
}

TEST_P(DeconvolutionBackwardTest, TakesBlockedLayouts) {
  for (const char* pattern : {"ABcd16b16a", "BAcd16a16b", "BAcd8a8b"}) {
    for (const char* tag : {"nChw16c", "nChw8c", "nhwc"}) {
      SCOPED_TRACE(absl::StrCat(pattern, " ", tag));
      GradientCase<DeconvolutionDesc> c = SpreadCase(SpreadShapes()[2]);
      c.desc.src =
          Tagged(c.desc.src.dims(), absl::StrContains(pattern, "16") ? "nChw16c" : "nChw8c");
      c.desc.dst = Tagged(c.desc.dst.dims(), tag);
      c.desc.weights = *MemoryDesc::CreatePattern(c.desc.weights.dims(), DataType::kF32, pattern);
      Check(c, true);
    }
  }
}

TEST_P(DeconvolutionBackwardTest, TakesABiasWithGaps) {
  if (!Runs(PropKind::kBackwardWeights)) GTEST_SKIP() << "is of src";
  GradientCase<DeconvolutionDesc> c = SpreadCase(SpreadShapes()[2]);
  c.desc.bias = *MemoryDesc::CreateStrided({40}, DataType::kF32, {2});
  Check(c, true);
}

TEST_P(DeconvolutionBackwardTest, AddsAndMasks) { CheckPostOps(SpreadCase(SpreadShapes()[4])); }

DeconvolutionDesc DescOfImages(SpreadShape shape, int64_t images) {
  shape.src[0] = images;
  return SpreadCase(shape).desc;
}

TEST_P(DeconvolutionBackwardTest, AnImageOfSrcDoesNotDependOnTheBatch) {
  if (!Runs(PropKind::kBackwardData)) GTEST_SKIP() << "is of weights";
  if (GetParam().traits.runs_another) GTEST_SKIP() << "layouts may decide what runs inside";
  for (const SpreadShape& shape : SpreadShapes()) {
    SCOPED_TRACE(shape.why);
    ExpectBitsOfImagesAlone(3, [&](int64_t images) { return DescOfImages(shape, images); });
  }
}

TEST_P(DeconvolutionBackwardTest, CutsOfABatchGiveTheSameBits) {
  const ImplementationTraits& traits = GetParam().traits;
  if (!Runs(PropKind::kBackwardWeights) || traits.is_reference || traits.runs_another)
    GTEST_SKIP() << "a reference rounds the sum of each run; post-ops may decide what runs inside";
  for (const SpreadShape& shape : SpreadShapes()) {
    SCOPED_TRACE(shape.why);
    for (const std::vector<int64_t>& parts : {std::vector<int64_t>{1, 1, 1}, {2, 3}})
      ExpectBitsOfCuts(parts, [&](int64_t images) { return DescOfImages(shape, images); });
  }
}

TEST(DeconvolutionGradientErrorsTest, AreNamed) {
  const auto status = StatusOfCreating<DeconvolutionDesc>(CreateDeconvolution);
  DeconvolutionDesc desc = SpreadCase(SpreadShapes()[1]).desc;
  desc.prop_kind = PropKind::kBackwardData;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "bias"));
  desc.prop_kind = PropKind::kBackward;
  EXPECT_THAT(status(desc), StatusIs(kUnimplemented, "backward"));
  desc.prop_kind = PropKind::kBackwardWeights;
  desc.src = *MemoryDesc::CreateAny(desc.src.dims(), DataType::kS8);
  EXPECT_THAT(status(desc), StatusIs(kUnimplemented, "takes f32 only, not s8"));
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, DeconvolutionBackwardTest,
                         ::testing::ValuesIn(BackwardRows(DeconvolutionImplementations())),
                         RowName<Implementation<DeconvolutionDesc>>);

}  // namespace
}  // namespace tilewire::testing
