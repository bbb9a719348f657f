// SPDX-License-Identifier: Apache-2.0
//
// Backward of eltwise: the derivative of every function, from src and from dst. The derivatives
// themselves are checked by central differences in functions_test.cc.
#include <cmath>

#include "engine/primitives/eltwise/eltwise.h"
#include "tests/engine/primitives/row_test.h"
#include "tests/support/function_cases.h"

namespace tilewire::testing {
namespace {

class EltwiseBackwardTest : public RowTest<EltwiseDesc> {
 protected:
  EltwiseBackwardTest() : RowTest(CreateEltwise) {}

  // With x in `saved`, or f(x) where dst is read.
  void ExpectMatches(const EltwiseOp& op, bool reads_result, const MemoryDesc& md,
                     const MemoryDesc& gradients, const std::vector<float>& saved) {
    SCOPED_TRACE(absl::StrCat(md.ToString(), reads_result ? " from dst" : " from src"));
    EltwiseDesc desc{PropKind::kBackwardData, op};
    (reads_result ? desc.dst : desc.src) = md;
    desc.diff_src = desc.diff_dst = gradients;
    const auto primitive = Create(desc);
    if (!primitive) return;
    const int saved_arg = reads_result ? kArgDst : kArgSrc;
    const std::vector<float> dy = RandomFloats(saved.size(), 3, -2, 2);
    const Bytes packed = Pack(md, saved), diff_dst = Pack(gradients, dy);
    const std::vector<float> dx = Unpack<float>(
        gradients, ExecuteAllWays(*primitive, {{saved_arg, &packed}, {kArgDiffDst, &diff_dst}},
                                  kArgDiffSrc, Garbage(gradients, 7)));
    for (size_t i = 0; i < saved.size(); ++i) {
      const double slope = reads_result ? functions::EltwiseDerivativeOfResult(op, saved[i])
                                        : functions::EltwiseDerivative(op, saved[i]);
      const double expected = slope * dy[i];
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(dx[i])) << "f'(" << saved[i] << ")";
        continue;
      }
      EXPECT_NEAR(dx[i], expected, 2e-6 * (1 + std::abs(slope)) * (1 + std::abs(saved[i])))
          << "f'(" << saved[i] << ") = " << slope;
    }
  }

  static std::vector<float> ResultsOf(const EltwiseOp& op, std::vector<float> values) {
    for (float& value : values) value = functions::EltwiseScalar(op, value);
    return values;
  }
};

TEST_P(EltwiseBackwardTest, EveryFunctionFromSrcAndFromDst) {
  const std::vector<float> values = RandomFloats(331, 1, -6, 6);
  const MemoryDesc md = Plain({331});
  for (const FunctionCase& one : kFunctionCases) {
    if (!functions::HasSlope(one.op.function)) continue;
    if (one.op.function == functions::Function::kPow && std::abs(one.op.beta) > 100) continue;
    SCOPED_TRACE(one.why);
    ExpectMatches(one.op, false, md, md, values);
    if (functions::HasResultSlope(one.op))
      ExpectMatches(one.op, true, md, md, ResultsOf(one.op, values));
  }
}

TEST_P(EltwiseBackwardTest, KinksAndLargeArguments) {
  const std::vector<float> values = {0, -0.0f, 1, -1, 6, 20, -20, 80, -80};
  const MemoryDesc md = Plain({static_cast<int64_t>(values.size())});
  using enum functions::Function;
  for (const EltwiseOp& op : {EltwiseOp{kRelu},
                              EltwiseOp{kRelu, 0.25f},
                              EltwiseOp{kAbs},
                              EltwiseOp{kBoundedRelu, 6},
                              EltwiseOp{kClip, -1, 1},
                              EltwiseOp{kElu, 0.5f},
                              EltwiseOp{kTanh},
                              EltwiseOp{kLogistic},
                              EltwiseOp{kSoftRelu},
                              EltwiseOp{kSquare},
                              EltwiseOp{kGelu},
                              EltwiseOp{kGeluErf},
                              EltwiseOp{kSwish, 1},
                              EltwiseOp{kHardSwish, 0.25f, 0.5f},
                              EltwiseOp{kMish},
                              EltwiseOp{kSoftsign},
                              EltwiseOp{kThresholdedRelu, 1},
                              EltwiseOp{kShrink, 1, 0.5f},
                              EltwiseOp{kErf},
                              EltwiseOp{kNegate},
                              EltwiseOp{kPow, 2, 3},
                              EltwiseOp{kPow, 0, -1},
                              EltwiseOp{kPow, 3, 1}}) {
    SCOPED_TRACE(AlgorithmName(op.function));
    ExpectMatches(op, false, md, md, values);
  }
}

// Slopes that are other functions' values, where they are large and where they are not finite.
TEST_P(EltwiseBackwardTest, PowersAndLogarithms) {
  const std::vector<float> values = {1e-4f, 0.01f, 0.5f, 1, 3, 1e4f, -0.5f, -3};
  const MemoryDesc md = Plain({static_cast<int64_t>(values.size())});
  using enum functions::Function;
  for (const EltwiseOp& op :
       {EltwiseOp{kLog}, EltwiseOp{kReciprocal}, EltwiseOp{kPow, 1, 0.5f}, EltwiseOp{kPow, 2, -1},
        EltwiseOp{kPow, 1, 1.5f}, EltwiseOp{kPow, -0.5f, -0.5f}, EltwiseOp{kPow, 1, 0.1f},
        EltwiseOp{kPow, 1, 0}, EltwiseOp{kPow, 1, 2}}) {
    SCOPED_TRACE(absl::StrCat(AlgorithmName(op.function), " ", op.alpha, " ", op.beta));
    ExpectMatches(op, false, md, md, values);
  }
}

TEST_P(EltwiseBackwardTest, EveryLayoutKeepsAZeroTail) {
  using enum functions::Function;
  for (const Dims& dims : ImageDims()) {
    const std::vector<float> values = RandomFloats(*ElementCount(dims), 1, 0.1f, 4);
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (const EltwiseOp& op :
           {EltwiseOp{kRelu}, EltwiseOp{kLinear, -3}, EltwiseOp{kTanh}, EltwiseOp{kSqrt}}) {
        ExpectMatches(op, false, layout.desc, layout.desc, values);
        ExpectMatches(op, true, layout.desc, layout.desc, ResultsOf(op, values));
      }
      ExpectMatches({kLog}, false, layout.desc, layout.desc, values);
      ExpectMatches({kPow, 1, 0.5f}, false, layout.desc, layout.desc, values);
      ExpectMatches({kGelu}, false, Plain(dims), layout.desc, values);
    }
  }
}

TEST_P(EltwiseBackwardTest, SizesAroundVectorsAndPieces) {
  for (int64_t count : {1, 7, 8, 9, 15, 16, 17, 33, 65, 129, 16385, 40000}) {
    const std::vector<float> values = RandomFloats(count, 1, -4, 4);
    ExpectMatches({functions::Function::kTanh}, false, Plain({count}), Plain({count}), values);
  }
}

TEST_P(EltwiseBackwardTest, AnyIsTheLayoutOfWhatIsRead) {
  const MemoryDesc src = Tagged({2, 17, 3, 3}, "nChw16c");
  EltwiseDesc desc{PropKind::kBackwardData, {}, src};
  desc.diff_src = desc.diff_dst = *MemoryDesc::CreateAny(src.dims(), DataType::kF32);
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDiffSrc), src);
  EXPECT_EQ(primitive->Desc(kArgDiffDst), src);
  const MemoryDesc empty = Tagged({0, 17, 3, 3}, "nChw16c");
  ExpectMatches({}, false, empty, empty, {});
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Eltwise);

TEST(EltwiseBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  constexpr auto kData = PropKind::kBackwardData;
  const MemoryDesc good = Plain({2, 10}), none;
  const MemoryDesc bytes = Plain({2, 10}, DataType::kU8);
  const MemoryDesc overlap = *MemoryDesc::CreateStrided({2, 10}, DataType::kF32, {1, 1});
  const auto status = StatusOfCreating(CreateEltwise);
  EXPECT_THAT(status({kData, {}, good, good, good, good}), StatusIs(kInvalid, "not both"));
  EXPECT_THAT(status({kData, {}, none, none, good, good}), StatusIs(kInvalid, "not none"));
  EXPECT_THAT(status({kData, {}, good, none, none, good}),
              StatusIs(kInvalid, "diff_src is missing"));
  EXPECT_THAT(status({kData, {}, good, none, good, Plain({2, 9})}),
              StatusIs(kInvalid, "diff_dst is f32:2x9"));
  EXPECT_THAT(status({kData, {}, good, none, overlap, good}), StatusIs(kInvalid, "overlap"));
  EXPECT_THAT(status({kData, {}, bytes, none, bytes, bytes}), StatusIs(kUnimplemented, "not u8"));
  EXPECT_THAT(status({kData, {functions::Function::kGelu}, none, good, good, good}),
              StatusIs(kUnimplemented, "does not follow from dst"));
  EXPECT_THAT(status({kData, {functions::Function::kRelu, -1}, none, good, good, good}),
              StatusIs(kUnimplemented, "does not follow from dst"));
  EXPECT_THAT(status({kData, {functions::Function::kIsNan}, good, none, good, good}),
              StatusIs(kUnimplemented, "is_nan has no derivative"));
  EXPECT_THAT(status({PropKind::kForwardTraining, {}, good, good, good, none}),
              StatusIs(kInvalid, "diff_src f32:2x10:nc is given to forward_training"));
  EXPECT_THAT(status({PropKind::kBackwardWeights, {}, good, none, good, good}),
              StatusIs(kUnimplemented, "does not run backward_weights"));
  Attributes sum;
  ASSERT_THAT(sum.post_ops.Append(SumPostOp{}), IsOk());
  EXPECT_THAT(status({kData, {}, good, none, good, good}, sum),
              StatusIs(kUnimplemented, "post-ops"));
}

}  // namespace
}  // namespace tilewire::testing
