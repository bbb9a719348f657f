// SPDX-License-Identifier: Apache-2.0
//
// The rows of convolution that compute gradients, over the shapes of the forward rows and others:
// images, channels around blocks, and windows some of whose taps have no pixel.
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/cpu/isa.h"
#include "engine/cpu/machine.h"
#include "engine/primitives/convolution/convolution.h"
#include "tests/engine/primitives/batched_gradient_test.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"

namespace tilewire::testing {
namespace {

std::vector<ConvolutionCase> GradientShapes() {
  std::vector<ConvolutionCase> shapes = {
      Case("eight images", {8, 16, 7, 7}, 24, {3, 3}, {.left = {1, 1}}),
      Case("eight images, 1x1", {8, 17, 5, 6}, 33, {1, 1}),
      Case("three images in bands of rows", {3, 8, 40, 70}, 8, {3, 3}, {.left = {1, 1}}),
      Case("a long row, in bands of pixels", {2, 9, 1, 700}, 8, {1, 3}, {.left = {0, 1}}),
      Case("blocks of weights with owners", {3, 264, 4, 4}, 272, {2, 2}, {.left = {1, 0}}),
      Case("owners of one image", {1, 520, 3, 3}, 264, {1, 1}),
      Case("strides larger than the window", {2, 20, 9, 11}, 24, {1, 2}, {.strides = {2, 3}}),
      Case("1x1, strided, tails of channels", {3, 20, 9, 11}, 33, {1, 1}, {.strides = {2, 3}}),
      Case("1x1, strided groups", {2, 32, 8, 9}, 48, {1, 1}, {.groups = 2, .strides = {2, 2}}),
      Case("1x1x1, strided", {2, 17, 4, 5, 6}, 16, {1, 1, 1}, {.strides = {2, 1, 2}}),
      Case("1x1, whole blocks", {3, 32, 7, 9}, 48, {1, 1}),
      Case("1x1, strided, images copied one by one", {9, 40, 7, 9}, 48, {1, 1},
           {.strides = {2, 3}}),
      Case("1x1, strided groups, images copied one by one", {8, 32, 8, 9}, 64, {1, 1},
           {.groups = 2, .strides = {2, 2}}),
      Case("1x1, strided and padded", {2, 16, 6, 7}, 16, {1, 1},
           {.strides = {2, 2}, .left = {1, 1}}),
      Case("more blocks of src than stay in cache", {2, 184, 13, 15}, 33, {1, 1}),
      Case("strides that leave pixels of src", {1, 16, 10, 12}, 16, {3, 3}, {.strides = {3, 2}}),
      Case("padding that windows do not reach over", {1, 8, 4, 5}, 8, {1, 3}, {.left = {1, 4}}),
      Case("strided, dilated, padded on one side", {2, 16, 11, 12}, 16, {3, 3},
           {.strides = {2, 3}, .dilations = {1, 2}, .left = {3, 0}, .right = {0, 4}}),
      Case("strided groups", {2, 32, 9, 9}, 48, {3, 3},
           {.groups = 2, .strides = {2, 2}, .left = {1, 1}}),
      Case("groups of 20, 1x1", {3, 60, 7, 9}, 60, {1, 1}, {.groups = 3}),
      Case("groups of 20 into whole blocks, 1x1, strided", {2, 60, 8, 9}, 48, {1, 1},
           {.groups = 3, .strides = {2, 2}}),
      Case("as many pixels as planes pay for", {3, 33, 13, 14}, 50, {1, 3}, {.left = {0, 1}}),
      Case("1x1, strided, planes", {2, 40, 33, 15}, 72, {1, 1}, {.strides = {2, 2}}),
      Case("more planes than stay in cache", {2, 264, 12, 12}, 1100, {1, 1}),
      Case("1x1, strided, larger than caches", {2, 33, 180, 181}, 16, {1, 1}, {.strides = {3, 4}}),
      Case("parts of channels, strided", {2, 136, 9, 9}, 256, {3, 3},
           {.strides = {2, 2}, .left = {1, 1}}),
      Case("parts of channels, 1x1, strided", {2, 264, 5, 5}, 1100, {1, 1}, {.strides = {2, 2}}),
      Case("parts of channels", {2, 150, 4, 5}, 256, {3, 3}, {.left = {1, 1}}),
      Case("wide windows of one channel, strided", {2, 40, 13, 14}, 40, {5, 7},
           {.groups = 40, .strides = {2, 3}, .dilations = {0, 1}, .left = {2, 5}}),
      Case("windows of one channel in parts of rows, some of which reach nothing", {2, 20, 3, 9},
           20, {7, 7}, {.groups = 20, .left = {5, 3}}),
      Case("windows of one channel, whose rows of taps fill the registers", {2, 20, 5, 31}, 20,
           {2, 12}, {.groups = 20, .left = {1, 6}}),
      Case("windows of one channel, whose rows of taps exceed the registers", {2, 20, 4, 40}, 20,
           {2, 29}, {.groups = 20, .left = {1, 14}}),
      Case("long rows of one channel, strides larger than the window", {1, 17, 7, 75}, 17, {2, 2},
           {.groups = 17, .strides = {3, 3}}),
      Case("groups with owners", {2, 540, 3, 3}, 1620, {1, 1}, {.groups = 3}),
      Case("no image", {0, 16, 5, 5}, 16, {3, 3}, {.left = {1, 1}}),
  };
  for (int64_t ic : {1, 3, 15, 16, 17, 48, 80}) {
    for (int64_t oc : {1, 15, 16, 17, 80}) {
      shapes.push_back(Case("channels around blocks", {3, ic, 5, 6}, oc, {3, 3},
                            {.strides = {ic % 2 == 1 ? 2 : 1, 1}, .left = {1, 1}}));
    }
  }
  for (const ConvolutionCase& shape : ConvolutionCases()) shapes.push_back(shape);
  return shapes;
}

GradientCase<ConvolutionDesc> GradientCaseOf(const ConvolutionCase& shape,
                                             absl::string_view src_pattern = "",
                                             absl::string_view dst_pattern = "") {
  const ConvolutionDesc desc = DescOf(shape, src_pattern, dst_pattern);
  return {shape.why, desc,
          ConvolutionProducts({desc.src.dims(), desc.dst.dims(), shape.kernel, shape.groups,
                               desc.strides, desc.dilations, desc.padding_left})};
}

ConvolutionCase OfImages(ConvolutionCase shape, int64_t images) {
  shape.batch = images;
  return shape;
}

class ConvolutionGradientTest : public BatchedGradientTest<ConvolutionDesc> {
 protected:
  ConvolutionGradientTest() : BatchedGradientTest(CreateConvolution) {}
};

// Plain loops take the smaller shapes.
std::vector<ConvolutionCase> ShapesFor(const ImplementationFacts& row) {
  constexpr int64_t kMostProducts = 1 << 20;
  std::vector<ConvolutionCase> shapes = GradientShapes();
  std::erase_if(shapes, [&](const ConvolutionCase& shape) {
    return row.traits.is_reference &&
           *ElementCount(shape.DstDims()) * shape.Products() > kMostProducts;
  });
  return shapes;
}

TEST_P(ConvolutionGradientTest, IsExactOnIntegers) {
  if (GetParam().traits.runs_another) GTEST_SKIP() << "runs the others, see TakesNamedLayouts";
  for (const ConvolutionCase& shape : ShapesFor(GetParam())) Check(GradientCaseOf(shape), true);
}

TEST_P(ConvolutionGradientTest, IsTheOraclesWithinItsBound) {
  if (GetParam().traits.runs_another) GTEST_SKIP() << "runs the others, see TakesNamedLayouts";
  for (const ConvolutionCase& shape : ShapesFor(GetParam())) Check(GradientCaseOf(shape), false);
}

TEST_P(ConvolutionGradientTest, TakesNamedLayouts) {
  const ConvolutionCase shape = Case("layouts", {2, 16, 5, 6}, 24, {3, 3}, {.left = {1, 1}});
  const ConvolutionCase colours =
      Case("colours", {2, 3, 9, 10}, 16, {3, 3}, {.strides = {2, 2}, .left = {1, 1}});
  const ConvolutionCase depthwise =
      Case("depthwise", {2, 24, 7, 9}, 24, {3, 3}, {.groups = 24, .left = {1, 1}});
  const ConvolutionCase one_tap =
      Case("one tap, strided", {2, 20, 7, 9}, 24, {1, 1}, {.strides = {2, 2}});
  for (const char* src : {"abcd", "acdb", "aBcd8b", "aBcd16b"}) {
    for (const char* dst : {"abcd", "acdb", "aBcd8b", "aBcd16b"}) {
      SCOPED_TRACE(::testing::Message() << src << " " << dst);
      Check(GradientCaseOf(shape, src, dst), true);
      Check(GradientCaseOf(colours, src, dst), true);
      Check(GradientCaseOf(depthwise, src, dst), true);
      Check(GradientCaseOf(one_tap, src, dst), true);
    }
  }
}

TEST_P(ConvolutionGradientTest, AddsAndMasks) {
  CheckPostOps(GradientCaseOf(Case("dense", {3, 17, 6, 7}, 20, {3, 3}, {.left = {1, 1}})));
  CheckPostOps(GradientCaseOf(
      Case("strided", {2, 16, 7, 7}, 24, {3, 3}, {.strides = {2, 2}, .left = {1, 1}})));
  CheckPostOps(
      GradientCaseOf(Case("depthwise", {3, 20, 6, 7}, 20, {3, 3}, {.groups = 20, .left = {1, 1}})));
  CheckPostOps(
      GradientCaseOf(Case("one tap, strided", {2, 20, 7, 6}, 24, {1, 1}, {.strides = {2, 2}})));
  CheckPostOps(GradientCaseOf(Case("few channels", {2, 3, 9, 9}, 17, {3, 3}, {.left = {1, 1}})));
  CheckPostOps(GradientCaseOf(Case("planes", {2, 40, 12, 12}, 33, {1, 3}, {.left = {0, 1}})));
  CheckPostOps(GradientCaseOf(Case("owners", {2, 264, 3, 3}, 264, {2, 2})));
}

// One image after the other, and parts of several; more images than have sums of their own at once.
TEST_P(ConvolutionGradientTest, CutsOfABatchGiveTheSameBits) {
  const ImplementationTraits& traits = GetParam().traits;
  if (!Runs(PropKind::kBackwardWeights) || traits.is_reference || traits.runs_another)
    GTEST_SKIP() << "a reference rounds the sum of each run; post-ops may decide what runs inside";
  const ConvolutionCase shapes[] = {
      Case("by images", {1, 17, 5, 6}, 24, {3, 3}, {.left = {1, 1}}),
      Case("by images in bands", {1, 8, 40, 70}, 24, {3, 3}, {.left = {1, 1}}),
      Case("few channels", {1, 3, 9, 9}, 17, {3, 3}, {.strides = {2, 2}, .left = {1, 1}}),
      Case("by owners", {1, 264, 5, 6}, 272, {3, 3}, {.left = {1, 1}}),
      Case("strided pixels", {1, 264, 5, 7}, 520, {1, 1}, {.strides = {2, 2}}),
      Case("groups in parts of blocks", {1, 60, 5, 6}, 36, {1, 1}, {.groups = 3}),
      Case("depthwise", {1, 20, 5, 6}, 20, {3, 3}, {.groups = 20, .left = {1, 1}}),
      Case("depthwise, taps in parts", {1, 20, 9, 9}, 20, {7, 7}, {.groups = 20, .left = {3, 3}})};
  for (const ConvolutionCase& shape : shapes) {
    SCOPED_TRACE(shape.why);
    for (const std::vector<int64_t>& parts : {std::vector<int64_t>{1, 1, 1}, {2, 3}})
      ExpectBitsOfCuts(parts, [&](int64_t images) { return DescOf(OfImages(shape, images)); });
  }
  const ConvolutionCase large = Case("sums of 512 KB each", {1, 256, 1, 2}, 512, {1, 1});
  ExpectBitsOfCuts({34, 3}, [&](int64_t images) { return DescOf(OfImages(large, images)); });
}

TEST_P(ConvolutionGradientTest, AnImageOfSrcDoesNotDependOnTheBatch) {
  const ImplementationTraits& traits = GetParam().traits;
  if (!Runs(PropKind::kBackwardData) || traits.is_reference || traits.runs_another)
    GTEST_SKIP() << "a reference has a sum for each element; layouts may decide what runs inside";
  std::vector<ConvolutionCase> shapes = ShapesFor(GetParam());
  for (int64_t size : {7, 14, 28})
    shapes.push_back(Case("for Winograd", {1, 64, size, size}, 64, {3, 3}, {.left = {1, 1}}));
  for (const ConvolutionCase& shape : shapes) {
    SCOPED_TRACE(shape.why);
    ExpectBitsOfImagesAlone(3, [&](int64_t images) { return DescOf(OfImages(shape, images)); });
  }
}

// Padded lanes are zeros however large the channels beside them are.
TEST_P(ConvolutionGradientTest, InfinityDoesNotReachTheTail) {
  const ConvolutionCase shapes[] = {
      Case("dense", {2, 11, 4, 5}, 13, {3, 3}, {.left = {1, 1}}),
      Case("few channels", {2, 3, 8, 9}, 19, {3, 3}, {.strides = {2, 2}, .left = {1, 1}}),
      Case("depthwise", {2, 11, 4, 5}, 11, {3, 3}, {.groups = 11, .left = {1, 1}})};
  const size_t count = std::size(shapes);
  for (size_t i = 0; i < count * KindsOf(GetParam()).size(); ++i) {
    const PropKind kind = KindsOf(GetParam())[i / count];
    const GradientCase<ConvolutionDesc> c = GradientCaseOf(shapes[i % count]);
    const auto primitive = Create(Backward(c.desc, kind));
    if (!primitive) continue;
    ByArgument operands = RandomOperands(/*integers=*/true, c.desc.src.ElementCount(),
                                         c.desc.weights.ElementCount(), c.desc.dst.ElementCount());
    for (auto& [arg, values] : operands) values[7] = std::numeric_limits<float>::infinity();
    RunGradient(*primitive, operands);  // looks at the tails
  }
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, ConvolutionGradientTest,
                         ::testing::ValuesIn(BackwardRows(ConvolutionImplementations())),
                         RowName<Implementation<ConvolutionDesc>>);

// Images with rows and columns exchanged.
std::vector<float> Transposed(const std::vector<float>& images, size_t rows, size_t columns) {
  std::vector<float> result(images.size());
  for (size_t i = 0; i < images.size(); ++i) {
    const size_t image = i / (rows * columns), row = i / columns % rows, column = i % columns;
    result[(image * columns + column) * rows + row] = images[i];
  }
  return result;
}

// Beside a border, where other taps reach, a tile has outputs of a column; of the same windows with
// rows and columns exchanged, of a row.
TEST(ConvolutionGradientByPhasesTest, ColumnsHaveTheBitsOfRows) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const ConvolutionCase wide =
      Case("", {2, 17, 27, 14}, 24, {1, 3}, {.strides = {2, 2}, .left = {0, 1}});
  const ConvolutionCase tall =
      Case("", {2, 17, 14, 27}, 24, {3, 1}, {.strides = {2, 2}, .left = {1, 0}});
  const auto run = [](const ConvolutionCase& shape, const ByArgument& operands) {
    const auto create = [&](ScratchpadMode mode) {
      Attributes attributes;
      attributes.scratchpad_mode = mode;
      return *CreateConvolution(Backward(DescOf(shape), PropKind::kBackwardData), attributes,
                                {.only = "convolution/avx2_f32_backward_data_by_phases"});
    };
    return RunGradient({create(ScratchpadMode::kLibrary), create(ScratchpadMode::kUser)}, operands)
        .at(kArgDiffSrc);
  };
  ByArgument operands =
      RandomOperands(/*integers=*/false, *ElementCount(wide.SrcDims()),
                     *ElementCount(wide.WeightsDims()), *ElementCount(wide.DstDims()));
  const std::vector<float> by_columns = run(wide, operands);
  operands[kArgDiffDst] = Transposed(operands[kArgDiffDst], 14, 7);
  EXPECT_EQ(Transposed(run(tall, operands), 14, 27), by_columns);
}

// The row for depthwise weights takes the shape with every vector unit, and is exact on integers.
void CheckDepthwiseWeights(const ConvolutionCase& shape, int64_t most_code_bytes) {
  const ConvolutionDesc desc = Backward(DescOf(shape), PropKind::kBackwardWeights);
  const ByArgument operands =
      RandomOperands(/*integers=*/true, *ElementCount(shape.SrcDims()),
                     *ElementCount(shape.WeightsDims()), *ElementCount(shape.DstDims()));
  const ExpectedGradient weights =
      GradientOf(desc.prop_kind, GradientCaseOf(shape).products, operands);
  for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (!cpu::Supports(isa)) continue;
    const std::string row =
        absl::StrCat("convolution/", cpu::IsaName(isa), "_f32_depthwise_weights");
    SCOPED_TRACE(row);
    const auto create = [&](ScratchpadMode mode) {
      Attributes attributes;
      attributes.scratchpad_mode = mode;
      return CreateConvolution(desc, attributes, {.only = row});
    };
    auto library = create(ScratchpadMode::kLibrary), user = create(ScratchpadMode::kUser);
    ASSERT_THAT(library, IsOk());
    ASSERT_THAT(user, IsOk());
    EXPECT_LT((*library)->info().code_bytes, most_code_bytes);
    const ByArgument found = RunGradient({*library, *user}, operands);
    ExpectGradient(weights, found.at(kArgDiffWeights), true, false);
    ExpectGradient(GradientOfBias(shape.DstDims(), operands), found.at(kArgDiffBias), true, false);
  }
}

// Windows have many kinds of rows of outputs, but each few rows of taps need code for few of them.
TEST(ConvolutionGradientOfDepthwiseWeightsTest, TallWindowsHaveLittleCode) {
  constexpr int64_t kMostCodeBytes = 256 * 1024;
  const ConvolutionCase shapes[] = {
      Case("71x5", {1, 20, 96, 96}, 20, {71, 5}, {.groups = 20, .left = {35, 2}}),
      Case("51x5", {1, 20, 56, 56}, 20, {51, 5}, {.groups = 20, .left = {25, 2}}),
      Case("27x27", {1, 20, 56, 56}, 20, {27, 27}, {.groups = 20, .left = {13, 13}}),
  };
  for (const ConvolutionCase& shape : shapes) {
    SCOPED_TRACE(shape.why);
    CheckDepthwiseWeights(shape, kMostCodeBytes);
  }
}

// Where taps far apart make nearly every tile of a row one of its own, the code of a plane exceeds
// its bound with 32 registers; with 16 a row of taps exceeds them.
TEST(ConvolutionGradientOfDepthwiseWeightsTest, RectanglesStandInForPlanesOfTooMuchCode) {
  constexpr int64_t kMostCodeBytes = 64 * 1024;
  CheckDepthwiseWeights(Case("", {2, 20, 1, 5632}, 20, {1, 22},
                             {.groups = 20,
                              .strides = {1, 16},
                              .dilations = {0, 255},
                              .left = {1, 5440},
                              .right = {1, 5440}}),
                        kMostCodeBytes);
}

struct GradientError {
  const char* why;
  PropKind kind;
  std::vector<PostOp> post_ops;
  void (*change)(ConvolutionDesc*);
  absl::StatusCode code;
  const char* text;  // that the message contains
};

// Every tile of a row looked at the whole of it: minutes.
TEST(ConvolutionGradientErrorsTest, LongRowsAreCutAtOnce) {
  ConvolutionDesc desc = DescOf(
      Case("", {0, 16, 1, 1 << 20}, 16, {1, 3}, {.groups = 16, .left = {0, 1}, .bias = false}));
  desc.prop_kind = PropKind::kBackwardData;
  EXPECT_THAT(CreateConvolution(desc, {}, {}), IsOk());
}

TEST(ConvolutionGradientErrorsTest, AreNamed) {
  constexpr PropKind kOfSrc = PropKind::kBackwardData, kOfWeights = PropKind::kBackwardWeights;
  const auto none = [](ConvolutionDesc*) {};
  const GradientError errors[] = {
      {"a bias of the gradient of src",
       kOfSrc,
       {},
       [](ConvolutionDesc* desc) { desc->bias = *MemoryDesc::CreateAny({16}, DataType::kF32); },
       kInvalid,
       "backward_data, which has no use for it"},
      {"all gradients at once",
       PropKind::kBackward,
       {},
       none,
       kUnimplemented,
       "does not run backward"},
      {"integers",
       kOfSrc,
       {},
       [](ConvolutionDesc* desc) {
         for (MemoryDesc* tensor : {&desc->src, &desc->dst})
           *tensor = *MemoryDesc::CreateAny(tensor->dims(), DataType::kU8);
         desc->weights = *MemoryDesc::CreateAny(desc->weights.dims(), DataType::kS8);
       },
       kUnimplemented,
       "takes f32 only, not u8"},
      {"a relu",
       kOfSrc,
       {EltwisePostOp{}},
       none,
       kUnimplemented,
       "backward_data takes a sum of scale 1 and then a mask"},
      {"a scaled sum",
       kOfWeights,
       {SumPostOp{2}},
       none,
       kUnimplemented,
       "backward_weights takes a sum of scale 1"},
      {"a mask of weights", kOfWeights, {MaskPostOp{}}, none, kUnimplemented, "not mask:0"},
      {"two sums", kOfSrc, {SumPostOp{}, SumPostOp{}}, none, kUnimplemented, "not sum:1;sum:1"},
      {"weights that overlap",
       kOfWeights,
       {},
       [](ConvolutionDesc* desc) {
         desc->weights = *MemoryDesc::CreateStrided({16, 16, 3, 3}, DataType::kF32, {0, 9, 3, 1});
       },
       kInvalid,
       "elements of a gradient share an address"},
      {"another size",
       kOfWeights,
       {},
       [](ConvolutionDesc* desc) {
         desc->padding_left = {0, 1};
       },
       kInvalid,
       "height of dst"},
  };
  for (const GradientError& error : errors) {
    SCOPED_TRACE(error.why);
    ConvolutionDesc desc =
        DescOf(Case("", {2, 16, 5, 5}, 16, {3, 3}, {.left = {1, 1}, .bias = false}));
    desc.prop_kind = error.kind;
    error.change(&desc);
    const absl::Status status = CreateConvolution(desc, AttributesOf(error.post_ops), {}).status();
    EXPECT_EQ(status.code(), error.code) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), error.text)) << status;
  }
}

// The gradients of the layers of networks are not left to the reference.
TEST(ConvolutionGradientDispatchTest, LayersHaveFastRows) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const ConvolutionCase shapes[] = {
      Case("first layer", {2, 3, 37, 37}, 64, {7, 7}, {.strides = {2, 2}, .left = {3, 3}}),
      Case("3x3", {2, 64, 14, 14}, 64, {3, 3}, {.left = {1, 1}}),
      Case("3x3, strided", {2, 64, 14, 14}, 128, {3, 3}, {.strides = {2, 2}, .left = {1, 1}}),
      Case("1x1", {2, 64, 14, 14}, 256, {1, 1}),
      Case("1x1, strided", {2, 64, 14, 14}, 128, {1, 1}, {.strides = {2, 2}}),
      Case("groups", {2, 64, 14, 14}, 64, {3, 3}, {.groups = 4, .left = {1, 1}}),
      Case("groups in parts of blocks", {2, 60, 14, 14}, 240, {1, 1}, {.groups = 3}),
      Case("groups of four", {2, 64, 14, 14}, 64, {3, 3}, {.groups = 16, .left = {1, 1}}),
      Case("depthwise", {2, 64, 14, 14}, 64, {3, 3}, {.groups = 64, .left = {1, 1}}),
  };
  for (const ConvolutionCase& shape : shapes) {
    for (PropKind kind : {PropKind::kBackwardData, PropKind::kBackwardWeights}) {
      SCOPED_TRACE(::testing::Message() << shape.why << " " << PropKindName(kind));
      const auto primitive = CreateConvolution(Backward(DescOf(shape), kind), AttributesOf({}), {});
      ASSERT_THAT(primitive, IsOk());
      EXPECT_GT((*primitive)->info().code_bytes, 0) << (*primitive)->name();
    }
  }
}

int64_t ScratchpadBytes(const ConvolutionCase& shape, cpu::Isa isa) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  const auto primitive = CreateConvolution(Backward(DescOf(shape), PropKind::kBackwardData),
                                           attributes, {.max_isa = isa});
  return primitive.ok() ? (*primitive)->info().scratchpad_bytes : -1;
}

// Images of few pixels, and windows for Winograd's algorithm, are left to vectors where there are
// matrix tiles; and where tiles are used, no copy of all weights as planes is made.
TEST(ConvolutionGradientDispatchTest, PlanesAreForManyPixels) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const ConvolutionCase few = Case("7x7", {4, 512, 7, 7}, 2048, {1, 1});
  EXPECT_EQ(ScratchpadBytes(few, cpu::Isa::kAmx), ScratchpadBytes(few, cpu::Isa::kAvx512));
  const ConvolutionCase window = Case("3x3", {4, 64, 28, 28}, 64, {3, 3}, {.left = {1, 1}});
  EXPECT_EQ(ScratchpadBytes(window, cpu::Isa::kAmx), ScratchpadBytes(window, cpu::Isa::kAvx512));
  const ConvolutionCase many = Case("28x28", {4, 512, 28, 28}, 2048, {1, 1});
  constexpr int64_t kWeights = 512 * 2048, kF32 = 4, kPlanes = 6;
  const int64_t of_tiles = ScratchpadBytes(many, cpu::Isa::kAmx);
  EXPECT_GT(of_tiles, ScratchpadBytes(many, cpu::Isa::kAvx512));
  EXPECT_LT(of_tiles, kWeights * (kF32 + kPlanes));
}

// Where weights exceed the second cache, no copy of all of them is made, on as many cores either.
TEST(ConvolutionGradientDispatchTest, FewPixelsCopyWeightsInParts) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  constexpr int64_t kWeights = 512 * 512 * 9 * 4;
  const int64_t cache = cpu::ThisMachine().cache_bytes[1];
  if (cache == 0 || cache > kWeights / 2) GTEST_SKIP() << "a second cache of " << cache << " bytes";
  for (int64_t stride : {1, 2}) {
    const ConvolutionCase shape = Case("few pixels", {4, 512, 7, 7}, 512, {3, 3},
                                       {.strides = {stride, stride}, .left = {1, 1}});
    for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512, cpu::Isa::kAmx})
      EXPECT_LT(ScratchpadBytes(shape, isa), kWeights / 4 * 3)
          << stride << " " << cpu::IsaName(isa);
  }
}

}  // namespace
}  // namespace tilewire::testing
