// SPDX-License-Identifier: Apache-2.0
//
// Every row of prelu's table against the formula: one rounding, hence the same bits.
#include "engine/primitives/prelu/prelu.h"

#include <cmath>
#include <limits>

#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

class PreluTest : public RowTest<PreluDesc> {
 protected:
  PreluTest() : RowTest(CreatePrelu) {}

  static PreluDesc DescOf(const MemoryDesc& src, const MemoryDesc& weights) {
    return {PropKind::kForwardInference, src, weights, src};
  }

  void ExpectFormula(const PreluDesc& desc) {
    SCOPED_TRACE(absl::StrCat(desc.src.ToString(), " ", desc.weights.ToString()));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const std::vector<float> x = RandomFloats(desc.src.ElementCount(), 1, -3, 3);
    const MemoryDesc& weights = primitive->Desc(kArgWeights);
    const std::vector<float> a = RandomFloats(weights.ElementCount(), 2, -1, 2);
    const MemoryDesc plain = Plain(desc.src.dims());
    const BroadcastOffsets shared(Plain(weights.dims()));
    std::vector<float> expected;
    ForEachIndex(desc.src.dims(), [&](const Dims& at) {
      const float value = x[plain.Offset(at)];
      expected.push_back(value < 0 ? value * a[shared.Offset(at)] : value);
    });
    const Bytes src = Pack(desc.src, x), slopes = Pack(weights, a);
    const MemoryDesc& dst = primitive->Desc(kArgDst);
    EXPECT_EQ(
        Unpack<float>(dst, ExecuteAllWays(*primitive, {{kArgSrc, &src}, {kArgWeights, &slopes}},
                                          kArgDst, Garbage(dst, 7))),
        expected);
  }
};

TEST_P(PreluTest, EveryLayoutAndSharing) {
  for (const Dims& dims : ImageDims()) {
    Dims channel(dims.size(), 1), pixel = dims;
    channel[1] = dims[1];
    pixel[0] = pixel[1] = 1;
    for (const Dims& shared : {channel, pixel, dims, Dims(dims.size(), 1)}) {
      for (const Layout& layout : LayoutsOf(dims)) {
        SCOPED_TRACE(layout.why);
        ExpectFormula(DescOf(layout.desc, *MemoryDesc::CreateAny(shared, DataType::kF32)));
        ExpectFormula(DescOf(layout.desc, Plain(shared)));
      }
    }
  }
}

TEST_P(PreluTest, AnyIsTheLayoutOfTheSource) {
  const auto any = [](const Dims& dims) { return *MemoryDesc::CreateAny(dims, DataType::kF32); };
  PreluDesc desc = DescOf(Tagged({2, 17, 3, 4}, "nhwc"), any({1, 17, 1, 1}));
  desc.dst = any({2, 17, 3, 4});
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), desc.src);
  EXPECT_EQ(primitive->Desc(kArgWeights), Tagged({1, 17, 1, 1}, "nhwc"));
}

TEST_P(PreluTest, SpecialValues) {
  using Limits = std::numeric_limits<float>;
  const std::vector<float> x = {0.0f, -0.0f, -Limits::infinity(), Limits::infinity(), -2, 3};
  const MemoryDesc md = Plain({6});
  const auto primitive = Create(DescOf(md, Plain({1})));
  ASSERT_TRUE(primitive);
  const Bytes src = Pack(md, x), slope = Pack<float>(Plain({1}), {-0.5f});
  const std::vector<float> dst =
      Unpack<float>(md, ExecuteAllWays(*primitive, {{kArgSrc, &src}, {kArgWeights, &slope}},
                                       kArgDst, Garbage(md, 7)));
  EXPECT_EQ(BitsOf(dst), BitsOf({0.0f, -0.0f, Limits::infinity(), Limits::infinity(), 1, 3}));
}

TEST_P(PreluTest, PostOpsFollow) {
  Attributes attributes;
  ASSERT_THAT(attributes.post_ops.Append(SumPostOp{2}), IsOk());
  ASSERT_THAT(attributes.post_ops.Append(EltwisePostOp{{functions::Function::kSquare}, 1}), IsOk());
  const MemoryDesc md = Plain({4});
  const auto primitive = Create(DescOf(md, Plain({1})), attributes);
  ASSERT_TRUE(primitive);
  const Bytes src = Pack<float>(md, {-4, 2, -8, 1}), slope = Pack<float>(Plain({1}), {0.5f});
  EXPECT_EQ(Unpack<float>(md, ExecuteAllWays(*primitive, {{kArgSrc, &src}, {kArgWeights, &slope}},
                                             kArgDst, Pack<float>(md, {1, 0, -1, 3}))),
            (std::vector<float>{0, 4, 36, 49}));
}

TILEWIRE_TEST_EVERY_ROW(Prelu);

TEST(PreluErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreatePrelu);
  constexpr auto kForward = PropKind::kForwardInference;
  const MemoryDesc md = Plain({2, 6}), slopes = Plain({1, 6});
  EXPECT_THAT(status({kForward, md, slopes, md}), IsOk());
  EXPECT_THAT(status({kForward, md, MemoryDesc(), md}), StatusIs(kInvalid, "prelu: weights"));
  EXPECT_THAT(status({kForward, md, Plain({6}), md}),
              StatusIs(kInvalid, "weights [6] cannot be broadcast to src [2,6]"));
  EXPECT_THAT(status({kForward, md, Plain({2, 3}), md}), StatusIs(kInvalid, "cannot be broadcast"));
  EXPECT_THAT(status({kForward, md, slopes, Plain({2, 5})}), StatusIs(kInvalid, "dst"));
  EXPECT_THAT(status({kForward, md, slopes, md, md}),
              StatusIs(kInvalid, "is given to forward_inference"));
  const MemoryDesc bytes = Plain({2, 6}, DataType::kU8);
  EXPECT_THAT(status({kForward, bytes, slopes, bytes}), StatusIs(kUnimplemented, "not u8"));
  EXPECT_THAT(status({kForward, md, Plain({1, 6}, DataType::kBf16), md}),
              StatusIs(kUnimplemented, "not bf16"));
}

}  // namespace
}  // namespace tilewire::testing
