// SPDX-License-Identifier: Apache-2.0
//
// Every row of the table that takes u8 and s8 against the reference: the same bytes, whatever the
// shape, the types, the scales, the chain, the layouts, the threads.
#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/match.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/engine/primitives/convolution/integer_cases.h"
#include "tests/engine/primitives/integer_tensors.h"
#include "tests/engine/primitives/row_name.h"
#include "tests/support/avx_vnni/dot_product_emulator.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using enum DataType;
using threading::Team;
using Bytes = std::vector<uint8_t>;

class IntegerConvolutionTest : public ::testing::TestWithParam<Implementation<ConvolutionDesc>> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(GetParam().isa))
      GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(GetParam().isa);
  }

  // Null where a row for depthwise convolutions, or for such as fill matrix tiles, refuses others.
  std::shared_ptr<const Primitive> Create(const ConvolutionDesc& desc,
                                          const Attributes& attributes) {
    auto primitive = CreateConvolution(desc, attributes, {.only = GetParam().name});
    CountCase(GetParam().name, primitive.ok());
    if (primitive.ok()) return *primitive;
    EXPECT_FALSE(IsFor(desc)) << primitive.status();
    return nullptr;
  }

  // Whether the row certainly takes it.
  static bool IsFor(const ConvolutionDesc& desc) {
    const int input_channels = desc.weights.rank() - desc.dst.rank() + 1;
    switch (GetParam().traits.algorithm) {
      case convolution::kDepthwise:
        return false;
      case convolution::kFirstLayer:
        return desc.weights.rank() == 4 && desc.weights.dim(1) <= 4 && desc.weights.dim(2) >= 5 &&
               desc.weights.dim(3) >= 5 && desc.weights.dim(3) <= 8 && desc.dilations[1] == 0 &&
               desc.weights_zero_point == 0 && desc.range.IsZero();
      case convolution::kMatrixTiles:
        return desc.weights.dim(input_channels) >= 32 && desc.dst.dims().back() >= 4 &&
               desc.weights_zero_point == 0;
      default:
        return true;
    }
  }

  void ExpectSameBytes(const ConvolutionDesc& desc, const Attributes& attributes,
                       const Values& values) {
    const std::shared_ptr<const Primitive> primitive = Create(desc, attributes);
    if (primitive == nullptr) return;
    ConvolutionDesc same = desc;
    same.src = primitive->Desc(kArgSrc);
    same.dst = primitive->Desc(kArgDst);
    const auto reference = CreateConvolution(same, attributes, {.reference_only = true});
    ASSERT_TRUE(reference.ok()) << reference.status();
    const Bytes expected = ResultOf(**reference, values, Team::Serial());
    const Bytes result = ResultOf(*primitive, values, Team::Serial());
    EXPECT_EQ(Logical(same.dst, result), Logical(same.dst, expected));
    EXPECT_TRUE(result == expected) << "bytes between the elements";
  }
  void ExpectSameBytes(const ConvolutionCase& shape, const Setting& setting) {
    SCOPED_TRACE(absl::StrCat(shape.why, ", ", DataTypeName(setting.src), " -> ",
                              DataTypeName(setting.dst)));
    ExpectSameBytes(IntegerDesc(shape, setting), IntegerAttributesOf(shape, setting),
                    RandomValues(shape, setting));
  }

  // On one thread and on several, in a batch and alone.
  void ExpectSameBitsOf(const std::vector<ConvolutionCase>& shapes) {
    threading::Arena arena(2);
    for (ConvolutionCase shape : shapes) {
      SCOPED_TRACE(shape.why);
      for (DataType src : {kU8, kS8}) {
        const Setting setting = {.src = src, .dst_pattern = ""};
        shape.batch = 3;
        const auto three = Create(IntegerDesc(shape, setting), IntegerAttributesOf(shape, setting));
        Values values = RandomValues(shape, setting);
        shape.batch = 1;
        const auto one = Create(IntegerDesc(shape, setting), IntegerAttributesOf(shape, setting));
        if (three == nullptr) continue;
        const Bytes result = ResultOf(*three, values, Team::Serial());
        EXPECT_TRUE(result == ResultOf(*three, values, Team(&arena)));
        values.src.resize(values.src.size() / 3);
        values.dst.resize(values.dst.size() / 3);
        const Bytes first = ResultOf(*one, values, Team(&arena));
        EXPECT_TRUE(std::equal(first.begin(), first.end(), result.begin()));
      }
    }
  }
};

TEST_P(IntegerConvolutionTest, MatchesReferenceOnEveryShape) {
  for (const ConvolutionCase& shape : ConvolutionCases()) {
    ExpectSameBytes(shape, {.bias = kS32, .scale_a_channel = true, .chain = {ReluPostOp()}});
    ExpectSameBytes(shape, {.src = kS8, .dst = kS8, .chain = {SumPostOp{.scale = 0.5f}}});
  }
}

TEST_P(IntegerConvolutionTest, MatchesReferenceHoweverTilesAreFilled) {
  for (const ConvolutionCase& shape : MatrixShapes()) {
    ExpectSameBytes(shape, {.bias = kS32, .scale_a_channel = true, .chain = {ReluPostOp()}});
    ExpectSameBytes(shape, {.src = kS8, .dst = kF32, .chain = {SumPostOp{.scale = 0.5f}}});
  }
}

// Windows of even and odd height, whose pairs of rows are shared or not.
TEST_P(IntegerConvolutionTest, FirstLayersMatchTheReference) {
  const ConvolutionCase shapes[] = {
      Case("stem", {2, 3, 23, 47}, 64, {7, 7},
           {.strides = {2, 2}, .left = {3, 3}, .right = {3, 3}}),
      Case("grey, without padding", {1, 1, 28, 28}, 20, {5, 5}),
      Case("four channels, eight taps, even height", {1, 4, 19, 40}, 33, {6, 8},
           {.strides = {1, 3}, .left = {2, 4}}),
      Case("rows that lie apart", {1, 2, 30, 21}, 16, {5, 5},
           {.strides = {3, 1}, .dilations = {1, 0}, .left = {4, 2}}),
      Case("one row of windows", {1, 3, 7, 9}, 48, {7, 7}),
  };
  for (const ConvolutionCase& shape : shapes) {
    ExpectSameBytes(shape, {.bias = kS32, .scale_a_channel = true, .chain = {ReluPostOp()}});
    ExpectSameBytes(shape, {.src = kS8, .dst = kS8, .chain = {SumPostOp{.scale = 0.5f}}});
    ExpectSameBytes(shape, {.dst = kF32, .src_pattern = "abcd"});
  }
}

// Weights as they lie in a file, and a dst that no row writes.
TEST(NamedWeightsTest, AreReorderedToTheBytesOfTheReference) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (const ConvolutionCase& shape : FewShapes()) {
    SCOPED_TRACE(shape.why);
    for (const char* dst_pattern : {"", "abcd"}) {
      for (DataType src : {kU8, kS8}) {
        const Setting setting = {.src = src, .dst_pattern = dst_pattern};
        const Attributes attributes = IntegerAttributesOf(shape, setting);
        const Values values = RandomValues(shape, setting);
        ConvolutionDesc desc = IntegerDesc(shape, setting);
        const size_t rank = shape.WeightsDims().size();
        desc.weights = AnyOr(shape.WeightsDims(), kS8, std::string("abcdef").substr(0, rank));
        for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::BestIsa()}) {
          const auto named = *CreateConvolution(desc, attributes, {.max_isa = isa});
          EXPECT_EQ(named->name(), "convolution/reordered");
          desc.src = named->Desc(kArgSrc);
          desc.dst = named->Desc(kArgDst);
          const auto reference = *CreateConvolution(desc, attributes, {.reference_only = true});
          EXPECT_TRUE(ResultOf(*named, values, Team::Serial()) ==
                      ResultOf(*reference, values, Team::Serial()));
        }
      }
    }
  }
}

TEST(MatrixTilesTest, AreTakenByWhatFillsThem) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const auto name_of = [](const ConvolutionCase& shape, DataType src, cpu::Isa max_isa) {
    const auto primitive =
        CreateConvolution(IntegerDesc(shape, {.src = src}), {}, {.max_isa = max_isa});
    return primitive.ok() ? (*primitive)->info().name : primitive.status().ToString();
  };
  for (DataType src : {kU8, kS8}) {
    for (const ConvolutionCase& shape : MatrixShapes()) {
      EXPECT_EQ(name_of(shape, src, cpu::BestIsa()), "convolution/amx_u8s8_direct") << shape.why;
      EXPECT_EQ(name_of(shape, src, cpu::Isa::kAvx512Vnni), "convolution/avx512_vnni_u8s8_direct");
    }
    const ConvolutionCase few_channels = Case("", {1, 31, 8, 8}, 16, {3, 3}, {.left = {1, 1}});
    const ConvolutionCase few_pixels = Case("", {1, 64, 1, 3}, 16, {1, 1});
    for (const ConvolutionCase& shape : {few_channels, few_pixels}) {
      EXPECT_EQ(name_of(shape, src, cpu::BestIsa()), "convolution/avx512_vnni_u8s8_direct");
    }
  }
}

// Live tiles cost every later switch between threads.
TEST(MatrixTilesTest, AreReleasedAfterEachExecution) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const ConvolutionCase shape = MatrixShapes()[0];
  const auto primitive = CreateConvolution(IntegerDesc(shape, {}), IntegerAttributesOf(shape, {}),
                                           {.only = "convolution/amx_u8s8_direct"});
  ASSERT_THAT(primitive, IsOk());
  ResultOf(**primitive, RandomValues(shape, {}), Team::Serial());
  struct {
    uint8_t bytes[64];
  } configuration = {{1}};
  asm volatile("sttilecfg %0" : "=m"(configuration));
  EXPECT_THAT(configuration.bytes, ::testing::Each(0));
}

TEST_P(IntegerConvolutionTest, MatchesReferenceOnEveryTypeAndChain) {
  const std::vector<std::vector<PostOp>> chains = ExactChains();
  for (const ConvolutionCase& shape : FewShapes()) {
    for (DataType src : {kU8, kS8}) {
      for (DataType dst : {kU8, kS8, kS32, kF32}) {
        for (size_t i = 0; i < std::size(chains); ++i) {
          ExpectSameBytes(shape, {.src = src,
                                  .dst = dst,
                                  .bias = i % 2 == 0 ? kF32 : kS32,
                                  .scale_a_channel = i % 3 == 0,
                                  .chain = chains[i]});
        }
      }
    }
  }
}

// Sums are exact and are multiplied, added to and rounded in one order.
TEST_P(IntegerConvolutionTest, MatchesReferenceByARangeOfRunTime) {
  for (ConvolutionCase shape : FewShapes()) {
    shape.left = shape.right = Dims(shape.in.size(), 0);
    for (const bool bias : {true, false}) {
      shape.bias = bias;
      for (const std::vector<float>& range : {std::vector<float>{1, 0}, {0.037f, 131}}) {
        const Setting setting = {
            .dst = kF32, .scale_a_channel = bias, .chain = {SumPostOp{}, ReluPostOp()}};
        ConvolutionDesc desc = IntegerDesc(shape, setting);
        desc.range = *MemoryDesc::CreatePattern({2}, kF32, "a");
        Values values = RandomValues(shape, setting);
        values.range = range;
        for (const int zero_point : {0, -128, 37}) {
          desc.weights_zero_point = zero_point;
          SCOPED_TRACE(absl::StrCat(shape.why, " ", range[1], " ", zero_point));
          ExpectSameBytes(desc, IntegerAttributesOf(shape, setting), values);
        }
        const Setting small = {.dst = kF32, .bound = 64};
        desc = IntegerDesc(shape, small);
        desc.range = *MemoryDesc::CreatePattern({2}, kF32, "a");
        values = RandomValues(shape, small);
        values.range = range;
        ExpectSameBytes(desc, IntegerAttributesOf(shape, small), values);
      }
    }
  }
}

TEST(IntegerConvolutionErrorsTest, ARangeIsTwoNumbersOfAnUnsignedSourceWithoutPadding) {
  const ConvolutionCase shape = Case("", {1, 16, 5, 5}, 16, {3, 3}, {.left = {1, 1}});
  ConvolutionDesc desc = IntegerDesc(shape, {.dst = kF32});
  desc.range = *MemoryDesc::CreatePattern({3}, kF32, "a");
  EXPECT_THAT(CreateConvolution(desc, {}, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "expected f32 [2]"));
  desc.range = *MemoryDesc::CreatePattern({2}, kF32, "a");
  desc.weights_zero_point = 128;
  EXPECT_THAT(CreateConvolution(desc, {}, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "zero point is 128, allowed are -128"));
  desc.weights_zero_point = 0;
  ASSERT_OK_AND_ASSIGN(const auto padded, CreateConvolution(desc, {}, {}));
  EXPECT_TRUE(padded->info().traits.is_reference);
  desc.range = MemoryDesc();
  desc.weights_zero_point = 1;
  EXPECT_THAT(CreateConvolution(desc, {}, {}).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "allowed is 0 without a range"));
  desc.range = *MemoryDesc::CreatePattern({2}, kF32, "a");
  desc.src = *MemoryDesc::CreateAny(shape.SrcDims(), kS8);
  EXPECT_THAT(CreateConvolution(desc, {}, {}).status(),
              StatusIs(absl::StatusCode::kUnimplemented, "only a src of u8"));
}

// vpmaddubsw would saturate on the first pair.
TEST_P(IntegerConvolutionTest, ExtremeProductsAreExact) {
  const ConvolutionCase shape = Case("", {1, 512, 4, 4}, 24, {3, 3}, {.left = {1, 1}});
  for (const auto& [type, element] :
       {std::pair{kU8, 255.0f}, std::pair{kS8, -128.0f}, std::pair{kS8, 127.0f}}) {
    for (float weight : {-128.0f, 127.0f}) {
      const Setting setting = {.src = type, .dst = kS32};
      Values values = RandomValues(shape, setting);
      std::fill(values.src.begin(), values.src.end(), element);
      std::fill(values.weights.begin(), values.weights.end(), weight);
      ExpectSameBytes(IntegerDesc(shape, setting), {.scratchpad_mode = ScratchpadMode::kUser},
                      values);
    }
  }
}

// Where two products fit 16 bits they are added there: s8 sources become u8 for that.
TEST_P(IntegerConvolutionTest, SmallWeightsGiveTheSameBytes) {
  for (const std::vector<ConvolutionCase>& shapes : {ConvolutionCases(), MatrixShapes()}) {
    for (const ConvolutionCase& shape : shapes) {
      ExpectSameBytes(
          shape, {.bias = kS32, .scale_a_channel = true, .chain = {ReluPostOp()}, .bound = 64});
      ExpectSameBytes(shape,
                      {.src = kS8, .dst = kS8, .chain = {SumPostOp{.scale = 0.5f}}, .bound = 64});
    }
  }
  for (const ConvolutionCase& shape : FewShapes()) ExpectSameBytes(shape, {.bound = 65});
}

TEST_P(IntegerConvolutionTest, ExtremeSumsOfPairsAreExact) {
  const ConvolutionCase shape = Case("", {1, 512, 4, 4}, 24, {3, 3}, {.left = {1, 1}});
  for (const auto& [type, element] :
       {std::pair{kU8, 255.0f}, std::pair{kS8, -128.0f}, std::pair{kS8, 127.0f}}) {
    for (float weight : {-64.0f, 64.0f}) {
      const Setting setting = {.src = type, .dst = kS32, .bound = 64};
      Values values = RandomValues(shape, setting);
      std::fill(values.src.begin(), values.src.end(), element);
      std::fill(values.weights.begin(), values.weights.end(), weight);
      ExpectSameBytes(IntegerDesc(shape, setting), {.scratchpad_mode = ScratchpadMode::kUser},
                      values);
    }
  }
}

// The promise is part of the layout that the row asks for, and the reorder to it looks at the
// weights.
TEST(SmallWeightsTest, ArePromisedToRowsThatAddPairsAlone) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const ConvolutionCase shape = FewShapes()[0];
  const auto bound_of = [&](int bound, cpu::Isa max_isa) {
    const auto primitive =
        CreateConvolution(IntegerDesc(shape, {.bound = bound}), {}, {.max_isa = max_isa});
    EXPECT_THAT(primitive, IsOk());
    return primitive.ok() ? (*primitive)->Desc(kArgWeights).extra().bound : -1;
  };
  EXPECT_EQ(bound_of(64, cpu::Isa::kAvx2), 64);
  EXPECT_EQ(bound_of(7, cpu::Isa::kAvx2), 64);
  EXPECT_EQ(bound_of(65, cpu::Isa::kAvx2), 0);
  EXPECT_EQ(bound_of(0, cpu::Isa::kAvx2), 0);
  EXPECT_EQ(bound_of(64, cpu::Isa::kBaseline), 0);
  if (!cpu::Supports(cpu::Isa::kAvx512Vnni)) return;
  EXPECT_EQ(bound_of(64, cpu::Isa::kAvx512Vnni), 0);
}

TEST_P(IntegerConvolutionTest, ResultsSaturate) {
  const ConvolutionCase shape = Case("", {1, 16, 3, 3}, 40, {1, 1});
  for (DataType dst : {kU8, kS8, kS32, kF32}) {
    const Setting setting = {.dst = dst};
    for (float scale : {1e3f, -1e3f, 1e9f, -1e9f, 3e38f}) {
      SCOPED_TRACE(scale);
      Attributes attributes;
      attributes.scratchpad_mode = ScratchpadMode::kUser;
      attributes.output_scales.scales = {scale};
      ExpectSameBytes(IntegerDesc(shape, setting), attributes, RandomValues(shape, setting));
    }
  }
}

TEST_P(IntegerConvolutionTest, EveryLayoutOfTheSource) {
  for (const char* pattern : {"abcd", "acdb", "aBcd16b", "aBcd8b", "acbd", "cdba"}) {
    for (DataType src : {kU8, kS8}) {
      for (const ConvolutionCase& shape : FewShapes()) {
        ExpectSameBytes(shape, {.src = src, .src_pattern = pattern, .dst_pattern = "acdb"});
      }
    }
  }
}

// Blocked: the tail is zero; a part of a wider tensor: what follows the channels is not touched.
TEST_P(IntegerConvolutionTest, LayoutsOfTheDestination) {
  for (const ConvolutionCase& shape : FewShapes()) {
    for (DataType type : {kU8, kS8, kS32, kF32}) {
      const Setting setting = {.dst = type, .chain = {SumPostOp{}}};
      ConvolutionDesc desc = IntegerDesc(shape, setting);
      Dims wide = shape.DstDims();
      wide[1] += 9;
      const MemoryDesc whole = *MemoryDesc::CreatePattern(wide, type, "acdb");
      desc.dst = *whole.SubMemory(shape.DstDims(), {0, 5, 0, 0});
      ExpectSameBytes(desc, IntegerAttributesOf(shape, setting), RandomValues(shape, setting));
      if (shape.groups > 1 && shape.groups != shape.ic) continue;  // groups within a block
      const bool avx2 = !GetParam().isa.Includes(cpu::Isa::kAvx512);
      if (shape.groups > 1 && GetParam().traits.algorithm != convolution::kDepthwise) continue;
      desc.dst = *MemoryDesc::CreatePattern(shape.DstDims(), type, avx2 ? "aBcd8b" : "aBcd16b");
      ExpectSameBytes(desc, IntegerAttributesOf(shape, setting), RandomValues(shape, setting));
    }
  }
}

TEST_P(IntegerConvolutionTest, ThreadsAndBatchDoNotChangeABit) {
  if (GetParam().isa == cpu::Isa::kAvx2Vnni && DotProductsAreEmulated())
    GTEST_SKIP() << "a product that software computes takes microseconds";
  ExpectSameBitsOf(ConvolutionCases());
}

TEST_P(IntegerConvolutionTest, ThreadsAndBatchDoNotChangeABitOfFewShapes) {
  ExpectSameBitsOf(FewShapes());
}

INSTANTIATE_TEST_SUITE_P(Rows, IntegerConvolutionTest,
                         ::testing::ValuesIn(IntegerRows(ConvolutionImplementations())),
                         RowName<Implementation<ConvolutionDesc>>);

const ConvolutionCase kSmall = Case("", {2, 8, 5, 6}, 8, {3, 3});

// Numbers worked out by hand, against the reference: 3 * 5 + 100, halved, is 57.5, rounded to even.
TEST(IntegerReferenceTest, BiasThenScaleThenChainThenRounding) {
  const ConvolutionCase one = Case("", {1, 1, 1, 1}, 1, {1, 1});
  const auto result = [&](DataType type, float scale, const std::vector<PostOp>& chain,
                          float before) {
    const Setting setting = {.dst = type, .bias = kS32, .chain = chain};
    Attributes attributes = IntegerAttributesOf(one, setting);
    attributes.output_scales.scales = {scale};
    const auto primitive =
        CreateConvolution(IntegerDesc(one, setting), attributes, {.reference_only = true});
    return Logical(
        (*primitive)->Desc(kArgDst),
        ResultOf(**primitive, {.src = {3}, .weights = {5}, .bias = {100}, .dst = {before}},
                 Team::Serial()))[0];
  };
  EXPECT_EQ(result(kF32, 0.5f, {}, 0), 57.5f);
  EXPECT_EQ(result(kU8, 0.5f, {}, 0), 58);
  EXPECT_EQ(result(kU8, 0.5f, {SumPostOp{}}, 1), 58);              // 58.5
  EXPECT_EQ(result(kS8, 1, {SumPostOp{}}, 100), 127);              // 215
  EXPECT_EQ(result(kS8, 1, {SumPostOp{.scale = 2}}, -128), -128);  // -141
  EXPECT_EQ(result(kU8, -1, {ReluPostOp(), SumPostOp{}}, 200), 200);
  EXPECT_EQ(result(kU8, -1, {SumPostOp{}, ReluPostOp()}, 200), 85);
  EXPECT_EQ(result(kS32, 1e9f, {}, 0), 2147483648.0f);  // 2^31 - 1, as the nearest float
}

TEST(IntegerConvolutionErrorsTest, CreationNamesWhatDoesNotFit) {
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const auto with = [](MemoryDesc ConvolutionDesc::*field, DataType type) {
    ConvolutionDesc desc = IntegerDesc(kSmall, {});
    desc.*field = *(desc.*field).WithDataType(type);
    return CreateConvolution(desc, {}, {}).status();
  };
  EXPECT_THAT(with(&ConvolutionDesc::weights, kU8), StatusIs(kUnimplemented, "weights of u8"));
  EXPECT_THAT(with(&ConvolutionDesc::dst, kBf16), StatusIs(kUnimplemented, "dst of bf16"));
  EXPECT_THAT(with(&ConvolutionDesc::bias, kS8), StatusIs(kUnimplemented, "bias of s8"));
  EXPECT_THAT(with(&ConvolutionDesc::src, kS32), StatusIs(kUnimplemented, "s32"));
  const auto scaled = [](int mask, std::vector<float> scales) {
    Attributes attributes;
    attributes.output_scales = {mask, std::move(scales)};
    return CreateConvolution(IntegerDesc(kSmall, {}), attributes, {}).status();
  };
  EXPECT_THAT(scaled(2, std::vector<float>(8, 0.5f)), IsOk());
  EXPECT_THAT(scaled(2, {1, 2}), StatusIs(kInvalid, "2 output scales where the mask asks for 8"));
  EXPECT_THAT(scaled(0, {INFINITY}), StatusIs(kInvalid, "not finite"));
  EXPECT_THAT(scaled(1, {1, 2}), StatusIs(kUnimplemented, "mask 1"));
  EXPECT_THAT(scaled(16, {1}), StatusIs(kInvalid, "mask 16"));
}

TEST(IntegerConvolutionErrorsTest, NoShapeFallsBackToTheReference) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (const ConvolutionCase& shape : ConvolutionCases()) {
    SCOPED_TRACE(shape.why);
    for (DataType src : {kU8, kS8}) {
      for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::BestIsa()}) {
        const auto primitive =
            CreateConvolution(IntegerDesc(shape, {.src = src}), {}, {.max_isa = isa});
        ASSERT_TRUE(primitive.ok()) << primitive.status();
        EXPECT_FALSE((*primitive)->info().traits.is_reference);
      }
    }
  }
}

}  // namespace
}  // namespace tilewire::testing
