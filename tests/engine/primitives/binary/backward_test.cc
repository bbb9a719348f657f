// SPDX-License-Identifier: Apache-2.0
//
// Backward of binary functions by central differences, broadcast along any dimensions.
#include <cmath>

#include "engine/primitives/binary/binary.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

constexpr BinaryAlgorithm kDifferentiable[] = {
    BinaryAlgorithm::kAdd, BinaryAlgorithm::kMul, BinaryAlgorithm::kMax,  BinaryAlgorithm::kMin,
    BinaryAlgorithm::kDiv, BinaryAlgorithm::kSub, BinaryAlgorithm::kPRelu};

double BinaryOf(BinaryAlgorithm algorithm, double x, double y) {
  switch (algorithm) {
    case BinaryAlgorithm::kAdd:
      return x + y;
    case BinaryAlgorithm::kMul:
      return x * y;
    case BinaryAlgorithm::kMax:
      return std::fmax(x, y);
    case BinaryAlgorithm::kMin:
      return std::fmin(x, y);
    case BinaryAlgorithm::kDiv:
      return x / y;
    case BinaryAlgorithm::kSub:
      return x - y;
    default:
      return x < 0 ? x * y : x;
  }
}

class BinaryBackwardTest : public RowTest<BinaryDesc> {
 protected:
  BinaryBackwardTest() : RowTest(CreateBinary) {}

  // Both gradients at once, or one where the other is the zero descriptor.
  void ExpectDifferences(BinaryDesc desc) {
    SCOPED_TRACE(absl::StrCat(AlgorithmName(desc.algorithm), " ", desc.src0.ToString(), " ",
                              desc.src1.ToString()));
    const auto primitive = Create(desc);
    if (!primitive) return;
    const std::vector<float> a = RandomFloats(desc.src0.ElementCount(), 1, -2, 2);
    std::vector<float> b = RandomFloats(desc.src1.ElementCount(), 2, 0.5f, 2);
    const std::vector<float> dy = RandomFloats(desc.src0.ElementCount(), 3, -1, 1);
    const Bytes src0 = Pack(desc.src0, a), src1 = Pack(desc.src1, b);
    const Bytes diff_dst = Pack(desc.diff_dst, dy);
    const auto forward = [&](const Doubles& x, const Doubles& y) {
      const MemoryDesc first = Plain(desc.src0.dims()), second = Plain(desc.src1.dims());
      Doubles dst;
      ForEachIndex(first.dims(), [&](const Dims& at) {
        dst.push_back(BinaryOf(desc.algorithm, x[first.Offset(at)],
                               y[second.Offset(BroadcastIndex(second.dims(), at))]));
      });
      return dst;
    };
    Inputs inputs = {{kArgSrc, &src0}, {kArgSrc1, &src1}, {kArgDiffDst, &diff_dst}};
    const Bytes other0 = Garbage(desc.src0, 1), other1 = Garbage(desc.src1, 1);
    if (!desc.diff_src0.IsZero()) {
      inputs.emplace_back(kArgDiffSrc1, &other1);
      const Bytes dx = ExecuteAllWays(*primitive, inputs, kArgDiffSrc, Garbage(desc.diff_src0, 7));
      inputs.pop_back();
      const auto by_first = [&](const Doubles& x) { return forward(x, ToDoubles(b)); };
      ExpectGradient(Unpack<float>(desc.diff_src0, dx),
                     CentralDifferences(ToDoubles(a), dy, by_first),
                     GradientTolerance(GetParam().traits.is_reference));
    }
    if (desc.diff_src1.IsZero()) return;
    inputs.emplace_back(kArgDiffSrc, &other0);
    const Bytes db = ExecuteAllWays(*primitive, inputs, kArgDiffSrc1, Garbage(desc.diff_src1, 7));
    const auto by_second = [&](const Doubles& y) { return forward(ToDoubles(a), y); };
    ExpectGradient(Unpack<float>(desc.diff_src1, db),
                   CentralDifferences(ToDoubles(b), dy, by_second),
                   GradientTolerance(GetParam().traits.is_reference));
  }

  static BinaryDesc DescOf(BinaryAlgorithm algorithm, const MemoryDesc& src0,
                           const MemoryDesc& src1) {
    return {algorithm, src0, src1, src0, PropKind::kBackwardData, src0, src1, src0};
  }
};

TEST_P(BinaryBackwardTest, CentralDifferencesOfEveryAlgorithm) {
  for (BinaryAlgorithm algorithm : kDifferentiable) {
    for (const Dims& second : {Dims{2, 5, 3}, Dims{1, 5, 1}, Dims{2, 1, 3}, Dims{1, 1, 1}})
      ExpectDifferences(DescOf(algorithm, Plain({2, 5, 3}), Plain(second)));
  }
}

TEST_P(BinaryBackwardTest, EveryLayout) {
  for (const Dims& dims : {Dims{2, 17, 3}, Dims{2, 9, 2, 2}}) {
    Dims channel(dims.size(), 1);
    channel[1] = dims[1];
    const std::vector<Layout> firsts = LayoutsOf(dims), seconds = LayoutsOf(channel);
    for (size_t i = 0; i < firsts.size(); ++i) {
      SCOPED_TRACE(firsts[i].why);
      for (BinaryAlgorithm algorithm : {BinaryAlgorithm::kMul, BinaryAlgorithm::kPRelu})
        ExpectDifferences(DescOf(algorithm, firsts[i].desc, seconds[i % seconds.size()].desc));
    }
  }
}

// Sums of more elements than there are partial sums, along runs and along columns.
TEST_P(BinaryBackwardTest, LongSums) {
  for (BinaryAlgorithm algorithm : kDifferentiable) {
    for (const Dims& second : {Dims{1, 3, 1}, Dims{1, 1, 70}, Dims{1, 1, 1}, Dims{2, 1, 70}})
      ExpectDifferences(DescOf(algorithm, Plain({2, 3, 70}), Plain(second)));
  }
}

// The sum of no elements, however many boxes of none there are.
TEST_P(BinaryBackwardTest, SumsOfNothingAreZero) {
  const MemoryDesc src0 = Plain({int64_t{1} << 40, 3, 0}), src1 = Plain({1, 3, 1});
  ExpectDifferences(DescOf(BinaryAlgorithm::kMul, src0, src1));
}

// Strides of 0 in the dimension that has none.
TEST_P(BinaryBackwardTest, NoResultIsWritten) {
  const MemoryDesc src0 = Plain({7, 1, 0, 1});
  const MemoryDesc src1 = *MemoryDesc::CreateStrided({7, 1, 0, 1}, DataType::kF32, {10, 9, 0, 9});
  ExpectDifferences(DescOf(BinaryAlgorithm::kMul, src0, src1));
}

TEST_P(BinaryBackwardTest, EitherGradientAlone) {
  BinaryDesc desc = DescOf(BinaryAlgorithm::kDiv, Plain({2, 5}), Plain({1, 5}));
  desc.diff_src1 = MemoryDesc();
  ExpectDifferences(desc);
  std::swap(desc.diff_src0, desc.diff_src1);
  desc.diff_src1 = desc.src1;
  ExpectDifferences(desc);
}

TEST_P(BinaryBackwardTest, EqualsShareTheGradient) {
  for (BinaryAlgorithm algorithm : {BinaryAlgorithm::kMax, BinaryAlgorithm::kMin}) {
    const MemoryDesc md = Plain({3});
    const auto primitive = Create(DescOf(algorithm, md, md));
    if (!primitive) return;
    const Bytes a = Pack<float>(md, {1, 2, 3}), b = Pack<float>(md, {2, 2, 2});
    const Bytes dy = Pack<float>(md, {4, 4, 4}), other = Garbage(md, 1);
    const Bytes dx = ExecuteAllWays(
        *primitive, {{kArgSrc, &a}, {kArgSrc1, &b}, {kArgDiffDst, &dy}, {kArgDiffSrc1, &other}},
        kArgDiffSrc, Garbage(md, 7));
    const bool is_max = algorithm == BinaryAlgorithm::kMax;
    EXPECT_EQ(Unpack<float>(md, dx),
              (std::vector<float>{is_max ? 0.0f : 4.0f, 2, is_max ? 4.0f : 0.0f}));
  }
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Binary);

TEST(BinaryBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateBinary);
  const MemoryDesc md = Plain({2, 6}), one = Plain({1, 6}), none;
  constexpr auto kData = PropKind::kBackwardData;
  constexpr auto kAdd = BinaryAlgorithm::kAdd;
  EXPECT_THAT(status({kAdd, md, one, md, kData, none, none, md}),
              StatusIs(kInvalid, "both diff_src0 and diff_src1 are missing"));
  EXPECT_THAT(status({kAdd, md, one, md, kData, md, md, md}),
              StatusIs(kInvalid, "diff_src1 is f32:2x6"));
  EXPECT_THAT(status({kAdd, md, one, md, kData, md, one, none}),
              StatusIs(kInvalid, "diff_dst is missing"));
  EXPECT_THAT(status({kAdd, md, one, md, PropKind::kForwardInference, none, one, none}),
              StatusIs(kInvalid, "diff_src1 f32:1x6"));
  const MemoryDesc bytes = Plain({2, 6}, DataType::kU8);
  EXPECT_THAT(status({kAdd, bytes, bytes, bytes, kData, bytes, bytes, bytes}),
              StatusIs(kUnimplemented, "not u8"));
  const MemoryDesc halves = Plain({2, 6}, DataType::kF16);
  EXPECT_THAT(status({kAdd, md, md, halves, kData, md, md, halves}),
              StatusIs(kUnimplemented, "not f16"));
}

}  // namespace
}  // namespace tilewire::testing
