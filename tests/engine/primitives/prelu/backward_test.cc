// SPDX-License-Identifier: Apache-2.0
//
// Gradients of prelu by central differences: of src and of the slopes, and of src alone.
#include <limits>

#include "engine/primitives/prelu/prelu.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

class PreluBackwardTest : public RowTest<PreluDesc> {
 protected:
  PreluBackwardTest() : RowTest(CreatePrelu) {}

  static PreluDesc DescOf(const MemoryDesc& src, const MemoryDesc& weights,
                          PropKind kind = PropKind::kBackward) {
    return {kind, src, weights, MemoryDesc(), src, src};
  }

  void ExpectDifferences(const PreluDesc& desc) {
    SCOPED_TRACE(absl::StrCat(PropKindName(desc.prop_kind), " ", desc.src.ToString(), " ",
                              desc.weights.ToString()));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const MemoryDesc& weights = primitive->Desc(kArgWeights);
    const std::vector<float> x = RandomFloats(desc.src.ElementCount(), 1, -2, 2);
    const std::vector<float> a = RandomFloats(weights.ElementCount(), 2, -0.5f, 1);
    const std::vector<float> dy = RandomFloats(desc.src.ElementCount(), 3, -1, 1);
    const auto forward = [&](const Doubles& values, const Doubles& slopes) {
      const BroadcastOffsets shared(Plain(weights.dims()));
      Doubles dst;
      ForEachIndex(desc.src.dims(), [&](const Dims& at) {
        const double value = values[dst.size()];
        dst.push_back(value < 0 ? value * slopes[shared.Offset(at)] : value);
      });
      return dst;
    };
    const Bytes src = Pack(desc.src, x), slopes = Pack(weights, a);
    const Bytes diff_dst = Pack(desc.diff_dst, dy), other = Garbage(weights, 1);
    Inputs inputs = {{kArgSrc, &src}, {kArgWeights, &slopes}, {kArgDiffDst, &diff_dst}};
    const bool of_weights = desc.prop_kind == PropKind::kBackward;
    ASSERT_EQ(primitive->library->Writes(kArgDiffWeights), of_weights);
    if (of_weights) inputs.emplace_back(kArgDiffWeights, &other);
    const double tolerance = GradientTolerance(GetParam().traits.is_reference);
    const Bytes dx = ExecuteAllWays(*primitive, inputs, kArgDiffSrc, Garbage(desc.diff_src, 7));
    const auto by_src = [&](const Doubles& values) { return forward(values, ToDoubles(a)); };
    ExpectGradient(Unpack<float>(desc.diff_src, dx), CentralDifferences(ToDoubles(x), dy, by_src),
                   tolerance);
    if (!of_weights) return;
    const Bytes unused = Garbage(desc.diff_src, 1);
    inputs.back() = {kArgDiffSrc, &unused};
    const Bytes da = ExecuteAllWays(*primitive, inputs, kArgDiffWeights, Garbage(weights, 7));
    const auto by_slopes = [&](const Doubles& values) { return forward(ToDoubles(x), values); };
    ExpectGradient(Unpack<float>(weights, da), CentralDifferences(ToDoubles(a), dy, by_slopes),
                   tolerance);
  }
};

TEST_P(PreluBackwardTest, EveryLayoutAndSharing) {
  for (const Dims& dims : {Dims{2, 17, 3}, Dims{2, 9, 2, 2}}) {
    Dims channel(dims.size(), 1), pixel = dims;
    channel[1] = dims[1];
    pixel[0] = pixel[1] = 1;
    for (const Dims& shared : {channel, pixel, dims, Dims(dims.size(), 1)}) {
      for (const Layout& layout : LayoutsOf(dims)) {
        SCOPED_TRACE(layout.why);
        ExpectDifferences(DescOf(layout.desc, *MemoryDesc::CreateAny(shared, DataType::kF32)));
      }
      ExpectDifferences(DescOf(Plain(dims), Plain(shared), PropKind::kBackwardData));
    }
  }
}

// Sums of more elements than there are partial sums, along runs and along columns.
TEST_P(PreluBackwardTest, LongSums) {
  for (const Dims& shared : {Dims{1, 3, 1}, Dims{1, 1, 70}, Dims{1, 1, 1}, Dims{2, 1, 70}})
    ExpectDifferences(DescOf(Plain({2, 3, 70}), Plain(shared)));
}

// A sum of many elements has parts, in a scratchpad; sums of integers are exact.
TEST_P(PreluBackwardTest, OneSlopeOfManyElements) {
  const MemoryDesc md = Plain({50001}), one = Plain({1});
  const auto primitive = Create(DescOf(md, one));
  ASSERT_TRUE(primitive);
  const std::vector<float> x = RandomIntegers(50001, 1), dy = RandomIntegers(50001, 2);
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] > 0 ? 0 : double{x[i]} * dy[i];
  const Bytes src = Pack(md, x), slope = Pack<float>(one, {0.5f}), diff_dst = Pack(md, dy);
  const Bytes other = Garbage(md, 1);
  const Bytes da = ExecuteAllWays(
      *primitive,
      {{kArgSrc, &src}, {kArgWeights, &slope}, {kArgDiffDst, &diff_dst}, {kArgDiffSrc, &other}},
      kArgDiffWeights, Garbage(one, 7));
  EXPECT_EQ(Unpack<float>(one, da), std::vector<float>{static_cast<float>(sum)});
}

// At 0 the gradient is that of the left side, whatever the sign of 0; NaN is not above 0.
TEST_P(PreluBackwardTest, AtTheKinkTheSlopeCounts) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const MemoryDesc md = Plain({4}), one = Plain({1});
  const auto primitive = Create(DescOf(md, one));
  ASSERT_TRUE(primitive);
  const Bytes src = Pack<float>(md, {0.0f, -0.0f, nan, 2}), slope = Pack<float>(one, {0.5f});
  const Bytes dy = Pack<float>(md, {2, 4, 6, 8}), other = Garbage(one, 1);
  const Bytes dx = ExecuteAllWays(
      *primitive,
      {{kArgSrc, &src}, {kArgWeights, &slope}, {kArgDiffDst, &dy}, {kArgDiffWeights, &other}},
      kArgDiffSrc, Garbage(md, 7));
  EXPECT_EQ(Unpack<float>(md, dx), (std::vector<float>{1, 2, 3, 8}));
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Prelu);

TEST(PreluBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreatePrelu);
  constexpr auto kAll = PropKind::kBackward, kData = PropKind::kBackwardData;
  const MemoryDesc md = Plain({2, 6}), slopes = Plain({1, 6}), none;
  EXPECT_THAT(status({kAll, md, slopes, none, md, md}), IsOk());
  EXPECT_THAT(status({kAll, md, slopes, none, none, md}),
              StatusIs(kInvalid, "diff_src is missing"));
  EXPECT_THAT(status({kAll, md, slopes, none, md, none}),
              StatusIs(kInvalid, "diff_dst is missing"));
  EXPECT_THAT(status({kAll, none, slopes, none, md, md}), StatusIs(kInvalid, "src"));
  EXPECT_THAT(status({kAll, md, slopes, md, md, md}), StatusIs(kInvalid, "has no use for it"));
  EXPECT_THAT(status({PropKind::kBackwardWeights, md, slopes, none, md, md}),
              StatusIs(kUnimplemented, "does not run backward_weights"));
  // Slopes that share an address can be read, but not written.
  const MemoryDesc same = *MemoryDesc::CreateStrided({2, 6}, DataType::kF32, {0, 0});
  EXPECT_THAT(status({kData, md, same, none, md, md}), IsOk());
  EXPECT_THAT(status({kAll, md, same, none, md, md}), StatusIs(kInvalid, "diff_weights"));
}

}  // namespace
}  // namespace tilewire::testing
