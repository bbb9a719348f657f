// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/eltwise/eltwise.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "tests/engine/primitives/row_test.h"
#include "tests/support/function_cases.h"
#include "tests/support/padded_tail.h"

namespace tilewire::testing {
namespace {

using Algorithm = EltwiseAlgorithm;

const FunctionCase& CaseOf(Algorithm algorithm) {
  return *std::find_if(std::begin(kFunctionCases), std::end(kFunctionCases),
                       [&](const FunctionCase& one) { return one.op.function == algorithm; });
}

// The error that the case allows, and results whose denormals, or those of a factor of theirs, may
// be flushed.
void ExpectClose(const FunctionCase& one, float x, float result) {
  const float expected = functions::EltwiseScalar(one.op, x);
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(result)) << "f(" << x << ") = " << result;
  } else if (std::isinf(expected)) {
    EXPECT_EQ(result, expected) << "f(" << x << ")";
  } else {
    const double units = AllowedUlps(one, x) * Ulp(expected);
    const double flushed = 0x1p-125 * (1 + std::abs(x) + std::abs(one.op.alpha));
    EXPECT_NEAR(result, expected, std::isfinite(x) ? units + flushed : 0) << "f(" << x << ")";
  }
}

// Arguments of every magnitude, near the ends of every piece of the functions, and a tail for each
// vector.
std::vector<float> Arguments() {
  std::vector<float> values = {0,     -0.0f, 1,      -1,      6,      -3,      3,
                               2.5f,  -2.5f, 1e-30f, -1e-30f, 1e-10f, -1e-10f, 0.5f,
                               -0.5f, 0.34f, -0.34f, 87,      -87,    88.5f,   -88.5f,
                               100,   -100,  1e4f,   -1e4f,   1e18f,  -1e18f};
  for (float range : {1e-3f, 1.0f, 8.0f, 50.0f}) {
    for (float value : RandomFloats(500, 1, -range, range)) values.push_back(value);
  }
  return values;
}

class EltwiseTest : public RowTest<EltwiseDesc> {
 protected:
  EltwiseTest() : RowTest(CreateEltwise) {}

  // The logical result; nothing where the row refuses.
  std::optional<std::vector<float>> Apply(const EltwiseOp& op, const MemoryDesc& from,
                                          const MemoryDesc& to, const std::vector<float>& values) {
    const auto primitive = Create({PropKind::kForwardInference, op, from, to});
    if (!primitive) return std::nullopt;
    const Bytes src = Pack(from, values);
    return Unpack<float>(to,
                         ExecuteAllWays(*primitive, {{kArgSrc, &src}}, kArgDst, Garbage(to, 7)));
  }

  void ExpectMatches(const FunctionCase& one, const MemoryDesc& from, const MemoryDesc& to,
                     const std::vector<float>& values) {
    SCOPED_TRACE(absl::StrCat(from.ToString(), " -> ", to.ToString()));
    const auto result = Apply(one.op, from, to, values);
    if (!result) return;
    ASSERT_EQ(result->size(), values.size());
    for (size_t i = 0; i < values.size(); ++i) ExpectClose(one, values[i], (*result)[i]);
  }

  // For a function that vectors compute without an error.
  void ExpectExact(const EltwiseOp& op, const MemoryDesc& md) {
    SCOPED_TRACE(absl::StrCat(md.ToString(), " algorithm ", static_cast<int>(op.function)));
    const auto primitive = Create({PropKind::kForwardInference, op, md, md});
    if (!primitive) return;
    const Bytes src = RandomTensor(md, 5);
    std::vector<float> expected = ElementValues(md, src);
    for (float& value : expected) value = functions::EltwiseScalar(op, value);
    EXPECT_TRUE(
        ElementBits(md, ExecuteAllWays(*primitive, {{kArgSrc, &src}}, kArgDst, Garbage(md, 7))) ==
        BitsAs(md.data_type(), expected));
  }
};

TEST_P(EltwiseTest, EveryAlgorithmOnEveryMagnitude) {
  const std::vector<float> values = Arguments();
  const MemoryDesc md = Plain({static_cast<int64_t>(values.size())});
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    ExpectMatches(one, md, md, values);
  }
}

TEST_P(EltwiseTest, TakesEveryFunctionThatHasCode) {
  const MemoryDesc md = Plain({17});
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    const auto primitive = Create({PropKind::kForwardInference, one.op, md, md});
    EXPECT_EQ(static_cast<bool>(primitive),
              functions::HasCode(one.op.function) || GetParam().traits.is_reference);
  }
}

TEST_P(EltwiseTest, InfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::isnan(functions::EltwiseScalar({Algorithm::kPow, 1, 0.5f}, -infinity)));
  const std::vector<float> values = {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()};
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    ExpectMatches(one, Plain({3}), Plain({3}), values);
  }
}

TEST_P(EltwiseTest, EveryLayoutKeepsAZeroTail) {
  for (const Dims& dims : ImageDims()) {
    const std::vector<float> values = RandomFloats(*ElementCount(dims), 1, -4, 4);
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (const FunctionCase& one : kFunctionCases) {
        SCOPED_TRACE(one.why);
        ExpectMatches(one, layout.desc, layout.desc, values);
      }
      ExpectMatches(CaseOf(Algorithm::kExp), Plain(dims), layout.desc, values);
    }
  }
}

// Sizes around the vectors of 8 and 16, four of them, and a piece of work for one thread.
TEST_P(EltwiseTest, SizesAroundVectorsAndPieces) {
  for (int64_t count :
       {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 16384, 16385, 40000}) {
    const std::vector<float> values = RandomFloats(count, 1, -4, 4);
    ExpectMatches(CaseOf(Algorithm::kTanh), Plain({count}), Plain({count}), values);
  }
}

TEST_P(EltwiseTest, ElementsDoNotDependOnTheirPlace) {
  const std::vector<float> values = RandomFloats(133, 1, -4, 4);
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    const auto all = Apply(one.op, Plain({133}), Plain({133}), values);
    if (!all) continue;
    for (int i : {0, 15, 64, 127, 128, 132}) {
      EXPECT_EQ(BitsOf(*Apply(one.op, Plain({1}), Plain({1}), {values[i]})), BitsOf({(*all)[i]}));
    }
  }
}

TEST_P(EltwiseTest, MayRunInPlace) {
  const MemoryDesc md = Tagged({2, 17, 3, 3}, "nChw8c");
  const std::vector<float> values = RandomFloats(md.ElementCount(), 1, -4, 4);
  for (const FunctionCase& one : kFunctionCases) {
    SCOPED_TRACE(one.why);
    const auto primitive = Create({PropKind::kForwardInference, one.op, md, md});
    if (!primitive) continue;
    Bytes bytes = Pack(md, values);
    ExecuteArgs args;
    args.Set(kArgSrc, bytes.data()).Set(kArgDst, bytes.data());
    ASSERT_THAT(primitive->library->Execute(args, threading::Team::Serial()), IsOk());
    EXPECT_EQ(BitsOf(Unpack<float>(md, bytes)), BitsOf(*Apply(one.op, md, md, values)));
    EXPECT_TRUE(PaddingIsZero(md, bytes.data()));
  }
}

TEST_P(EltwiseTest, AnyAndTensorsWithoutElements) {
  const MemoryDesc src = Tagged({2, 17, 3, 3}, "nChw16c");
  EltwiseDesc desc{PropKind::kForwardInference, {}, src, src};
  desc.dst = *MemoryDesc::CreateAny(src.dims(), DataType::kF32);
  const auto primitive = Create(desc);
  ASSERT_TRUE(primitive);
  EXPECT_EQ(primitive->Desc(kArgDst), src);
  const MemoryDesc empty = Tagged({0, 17, 3, 3}, "nChw16c");
  ExpectMatches(CaseOf(Algorithm::kExp), empty, empty, {});
}

// Integers saturate, fractions round to even.
TEST_P(EltwiseTest, OtherTypesAreComputedInF32) {
  const EltwiseOp ops[] = {
      {Algorithm::kRelu},   {Algorithm::kRelu, 0.5f}, {Algorithm::kLinear, -3, 0.5f},
      {Algorithm::kSquare}, {Algorithm::kAbs},        {Algorithm::kClip, -7.5f, 100.5f}};
  for (DataType type : kOtherTypes) {
    for (const Dims& dims : {Dims{2, 17, 3, 4}, Dims{1, 3, 5, 7}}) {
      for (const Layout& layout : LayoutsOf(dims, type)) {
        SCOPED_TRACE(layout.why);
        for (const EltwiseOp& op : ops) ExpectExact(op, layout.desc);
      }
    }
    ExpectExact(ops[2], Plain({20001}, type));  // more than a piece of work
  }
}

TILEWIRE_TEST_EVERY_ROW(Eltwise);

TEST(EltwiseErrorsTest, CreationNamesWhatDoesNotFit) {
  constexpr auto kForward = PropKind::kForwardInference;
  const MemoryDesc good = Plain({2, 10});
  const MemoryDesc overlap = *MemoryDesc::CreateStrided({2, 10}, DataType::kF32, {1, 1});
  const auto status = StatusOfCreating(CreateEltwise);
  EXPECT_THAT(status({kForward, {}, good, Plain({2, 11})}), StatusIs(kInvalid, "dst f32:2x11"));
  EXPECT_THAT(status({kForward, {}, MemoryDesc(), good}), StatusIs(kInvalid, "no layout"));
  EXPECT_THAT(status({kForward, {}, good, overlap}), StatusIs(kInvalid, "overlap"));
  EXPECT_THAT(status({kForward, {}, overlap, good}), IsOk());
  EXPECT_THAT(status({kForward, {static_cast<Algorithm>(200)}, good, good}),
              StatusIs(kInvalid, "no algorithm 200"));
  EXPECT_THAT(status({kForward, {}, good, Plain({2, 10}, DataType::kU8)}),
              StatusIs(kInvalid, "u8"));
  EXPECT_THAT(status({PropKind::kBackwardData, {}, good, good}), StatusIs(kInvalid, "backward"));
  Attributes relu;
  ASSERT_THAT(relu.post_ops.Append(EltwisePostOp{}), IsOk());
  EXPECT_THAT(status({kForward, {}, good, good}, relu), StatusIs(kUnimplemented, "post-ops"));
}

}  // namespace
}  // namespace tilewire::testing
