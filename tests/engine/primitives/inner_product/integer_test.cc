// SPDX-License-Identifier: Apache-2.0
//
// Every row of the table that takes u8 and s8 against the reference: the same bytes, whatever the
// shape, the types, the scales, the chain, the layouts, the threads.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "engine/primitives/inner_product/inner_product.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/engine/primitives/integer_tensors.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

using enum DataType;
using threading::Team;

struct Setting {
  DataType src = kU8, dst = kU8, bias = kF32;
  bool scale_a_channel = false;
  std::vector<PostOp> chain = {};
  int bound = 0;  // of the weights' magnitudes; 0: none
};

struct IntegerShape {
  Dims src;  // [N,C] or [N,C,spatial...]
  int64_t outputs;

  Dims WeightsDims() const {
    Dims dims = src;
    dims[0] = outputs;
    return dims;
  }
  Dims DstDims() const { return {src[0], outputs}; }
};

InnerProductDesc IntegerDesc(const IntegerShape& shape, const Setting& setting) {
  MemoryDesc weights = *MemoryDesc::CreateAny(shape.WeightsDims(), kS8);
  if (setting.bound > 0) weights = *weights.WithBound(setting.bound);
  return {.src = *MemoryDesc::CreateAny(shape.src, setting.src),
          .weights = std::move(weights),
          .bias = *MemoryDesc::CreateAny({shape.outputs}, setting.bias),
          .dst = *MemoryDesc::CreateAny(shape.DstDims(), setting.dst)};
}

Attributes AttributesOf(const IntegerShape& shape, const Setting& setting) {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  for (const PostOp& entry : setting.chain) EXPECT_TRUE(attributes.post_ops.Append(entry).ok());
  attributes.output_scales = SpreadingScales(*ElementCount(shape.WeightsDims()) / shape.outputs,
                                             shape.outputs, setting.scale_a_channel);
  return attributes;
}

Values RandomValues(const IntegerShape& shape, const Setting& setting) {
  return {.src = RandomOf(setting.src, shape.src, 1),
          .weights = setting.bound > 0 ? BoundedWeights(shape.WeightsDims(), setting.bound)
                                       : RandomOf(kS8, shape.WeightsDims(), 2),
          .bias = RandomOf(setting.bias, {shape.outputs}, 3),
          .dst = RandomOf(setting.dst, shape.DstDims(), 4)};
}

class IntegerInnerProductTest : public ::testing::TestWithParam<Implementation<InnerProductDesc>> {
 protected:
  void SetUp() override {
    if (!cpu::Supports(GetParam().isa))
      GTEST_SKIP() << "the CPU lacks " << cpu::IsaName(GetParam().isa);
  }

  void ExpectSameBytes(const InnerProductDesc& desc, const Attributes& attributes,
                       const Values& values) {
    const auto primitive = CreateInnerProduct(desc, attributes, {.only = GetParam().name});
    CountCase(GetParam().name, primitive.ok());
    if (GetParam().isa == cpu::Isa::kAmx && (desc.src.dim(0) < 8 || desc.src.dim(1) < 32)) {
      EXPECT_THAT(primitive, StatusIs(kUnimplemented, "8 rows of 32 channels"));
      return;
    }
    ASSERT_THAT(primitive, IsOk());
    InnerProductDesc same = desc;
    same.src = (*primitive)->Desc(kArgSrc);
    same.dst = (*primitive)->Desc(kArgDst);
    const auto reference = CreateInnerProduct(same, attributes, {.reference_only = true});
    ASSERT_THAT(reference, IsOk());
    static threading::Arena* const arena = new threading::Arena(2);
    const Bytes expected = ResultOf(**reference, values, Team::Serial());
    const Bytes result = ResultOf(**primitive, values, Team::Serial());
    EXPECT_EQ(Logical(same.dst, result), Logical(same.dst, expected));
    EXPECT_TRUE(result == expected) << "bytes between the elements";
    EXPECT_TRUE(result == ResultOf(**primitive, values, Team(arena))) << "two threads";
  }
  void ExpectSameBytes(const IntegerShape& shape, const Setting& setting) {
    SCOPED_TRACE(absl::StrCat(DimsToString(shape.src), " to ", shape.outputs, ", ",
                              DataTypeName(setting.src), " -> ", DataTypeName(setting.dst)));
    ExpectSameBytes(IntegerDesc(shape, setting), AttributesOf(shape, setting),
                    RandomValues(shape, setting));
  }
};

TEST_P(IntegerInnerProductTest, OutputsAroundVectorsAndBatchesAroundTiles) {
  for (int64_t outputs : {1, 3, 15, 16, 17, 33, 64, 65, 130}) {
    for (int64_t batch : {1, 2, 3, 4, 5, 6, 7, 8, 13}) {
      for (DataType src : {kU8, kS8}) {
        ExpectSameBytes({{batch, 37}, outputs}, {.src = src, .scale_a_channel = outputs % 2 == 1});
      }
    }
  }
}

TEST_P(IntegerInnerProductTest, FewAndManyProducts) {
  for (int64_t k : {1, 2, 3, 4, 5, 63, 64, 65, 68, 1000, 4097}) {
    for (DataType src : {kU8, kS8}) ExpectSameBytes({{3, k}, 20}, {.src = src, .bias = kS32});
  }
}

// Steps of 64 channels, tiles of 16 rows and pairs of them, blocks of 16 outputs.
TEST_P(IntegerInnerProductTest, BatchesThatFillMatrixTilesAndNot) {
  for (int64_t batch : {8, 16, 17, 32, 33, 70}) {
    for (const auto& [channels, outputs] : {std::pair{64, 32}, {128, 33}, {200, 80}, {33, 5}}) {
      for (DataType src : {kU8, kS8}) {
        ExpectSameBytes({{batch, channels}, outputs}, {.src = src, .chain = {SumPostOp{}}});
      }
    }
  }
  ExpectSameBytes({{9, 48, 2, 3}, 17}, {.src = kS8, .dst = kF32});
}

TEST(MatrixTilesTest, AreTakenByBatchesThatFillThem) {
  if (!cpu::Supports(cpu::Isa::kAmx)) GTEST_SKIP() << "the CPU lacks amx";
  const auto name_of = [](int64_t batch) {
    const auto primitive = CreateInnerProduct(IntegerDesc({{batch, 64}, 32}, {}), {}, {});
    return primitive.ok() ? (*primitive)->info().name : primitive.status().ToString();
  };
  EXPECT_EQ(name_of(8), "inner_product/amx_u8s8");
  EXPECT_EQ(name_of(7), "inner_product/avx512_vnni_u8s8");
}

TEST_P(IntegerInnerProductTest, EveryTypeAndChain) {
  for (const IntegerShape& shape :
       {IntegerShape{{5, 24}, 70}, IntegerShape{{2, 5, 3, 2}, 19}, IntegerShape{{18, 65}, 50}}) {
    for (DataType src : {kU8, kS8}) {
      for (DataType dst : {kU8, kS8, kS32, kF32}) {
        for (const std::vector<PostOp>& chain : ExactChains()) {
          for (DataType bias : {kF32, kS32}) {
            ExpectSameBytes(
                shape,
                {.src = src, .dst = dst, .bias = bias, .scale_a_channel = true, .chain = chain});
          }
        }
      }
    }
  }
}

TEST_P(IntegerInnerProductTest, EveryLayout) {
  for (const Dims& dims : {Dims{3, 20, 3, 5}, Dims{2, 17, 4}, Dims{3, 16, 2, 1, 3}}) {
    for (DataType src : {kU8, kS8}) {
      const IntegerShape shape{dims, 21};
      const Setting setting{.src = src, .chain = {SumPostOp{}}};
      InnerProductDesc desc = IntegerDesc(shape, setting);
      for (const Layout& layout : LayoutsOf(dims, src)) {
        SCOPED_TRACE(layout.why);
        desc.src = layout.desc;
        ExpectSameBytes(desc, AttributesOf(shape, setting), RandomValues(shape, setting));
      }
    }
  }
}

// Where two products fit 16 bits they are added there: s8 sources become u8 for that.
TEST_P(IntegerInnerProductTest, SmallWeightsGiveTheSameBytes) {
  for (DataType src : {kU8, kS8}) {
    for (int64_t outputs : {1, 3, 17, 70}) {
      for (int64_t batch : {1, 4, 5, 13}) {
        ExpectSameBytes({{batch, 37}, outputs}, {.src = src, .bias = kS32, .bound = 64});
      }
    }
    for (int64_t k : {1, 5, 64, 68, 4097}) ExpectSameBytes({{3, k}, 20}, {.src = src, .bound = 64});
    ExpectSameBytes({{3, 20, 3, 5}, 21}, {.src = src, .chain = {SumPostOp{}}, .bound = 64});
  }
}

// The first layers behind VGG's and ResNet's convolutions are long: extreme bytes, up to the bound
// of the contract.
TEST_P(IntegerInnerProductTest, ExtremeProductsAreExact) {
  for (const auto& [type, element] : {std::pair{kU8, 255.0f}, std::pair{kS8, -128.0f}}) {
    for (float weight : {-128.0f, 127.0f, -64.0f, 64.0f}) {
      const IntegerShape shape{{1, 25088}, 3};
      const Setting setting{.src = type, .dst = kS32, .bound = std::abs(weight) > 64 ? 0 : 64};
      Values values = RandomValues(shape, setting);
      std::fill(values.src.begin(), values.src.end(), element);
      std::fill(values.weights.begin(), values.weights.end(), weight);
      ExpectSameBytes(IntegerDesc(shape, setting), {.scratchpad_mode = ScratchpadMode::kUser},
                      values);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, IntegerInnerProductTest,
                         ::testing::ValuesIn(IntegerRows(InnerProductImplementations())),
                         RowName<Implementation<InnerProductDesc>>);

TEST(IntegerInnerProductErrorsTest, CreationNamesWhatDoesNotFit) {
  const IntegerShape shape{{2, 5}, 3};
  const auto with = [&](MemoryDesc InnerProductDesc::*field, DataType type) {
    InnerProductDesc desc = IntegerDesc(shape, {});
    desc.*field = *(desc.*field).WithDataType(type);
    return CreateInnerProduct(desc, {}, {}).status();
  };
  EXPECT_THAT(with(&InnerProductDesc::weights, kU8), StatusIs(kUnimplemented, "weights of u8"));
  EXPECT_THAT(with(&InnerProductDesc::dst, kF16), StatusIs(kUnimplemented, "dst of f16"));
  EXPECT_THAT(with(&InnerProductDesc::bias, kU8), StatusIs(kUnimplemented, "bias of u8"));
  Attributes attributes;
  attributes.output_scales = {2, {1, 2}};
  EXPECT_THAT(CreateInnerProduct(IntegerDesc(shape, {}), attributes, {}),
              StatusIs(kInvalid, "2 output scales where the mask asks for 3"));
}

}  // namespace
}  // namespace tilewire::testing
