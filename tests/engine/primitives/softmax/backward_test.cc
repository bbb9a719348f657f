// SPDX-License-Identifier: Apache-2.0
//
// Backward of softmax and logsoftmax by central differences, and logsoftmax itself.
#include <algorithm>
#include <cmath>

#include "engine/primitives/softmax/softmax.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

// The formula, for a tensor in row-major order.
Doubles SoftmaxOf(const Dims& dims, int axis, bool is_log, const Doubles& x) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  Doubles y(x.size());
  for (size_t first = 0; first < x.size(); ++first) {
    if (first / inner % dims[axis] != 0) continue;
    double total = 0;
    for (int64_t i = 0; i < dims[axis]; ++i) total += std::exp(x[first + i * inner]);
    for (int64_t i = 0; i < dims[axis]; ++i) {
      const size_t at = first + i * inner;
      y[at] = is_log ? x[at] - std::log(total) : std::exp(x[at]) / total;
    }
  }
  return y;
}

std::vector<float> ToFloats(const Doubles& values) {
  return std::vector<float>(values.begin(), values.end());
}

constexpr SoftmaxAlgorithm kBoth[] = {SoftmaxAlgorithm::kSoftmax, SoftmaxAlgorithm::kLogSoftmax};

class SoftmaxBackwardTest : public RowTest<SoftmaxDesc> {
 protected:
  SoftmaxBackwardTest() : RowTest(CreateSoftmax) {}

  void ExpectDifferences(SoftmaxAlgorithm algorithm, const MemoryDesc& dst,
                         const MemoryDesc& gradients, int axis) {
    SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), " ", dst.ToString(), " axis ", axis));
    const auto primitive =
        Create({PropKind::kBackwardData, {}, dst, axis, algorithm, gradients, gradients});
    if (!primitive) return;
    const bool is_log = algorithm == SoftmaxAlgorithm::kLogSoftmax;
    const Dims& dims = dst.dims();
    const std::vector<float> x = RandomFloats(dst.ElementCount(), 1, -3, 3);
    const std::vector<float> dy = RandomFloats(dst.ElementCount(), 2, -1, 1);
    const auto forward = [&](const Doubles& at) { return SoftmaxOf(dims, axis, is_log, at); };
    const Bytes y = Pack(dst, ToFloats(forward(ToDoubles(x)))), diff_dst = Pack(gradients, dy);
    const Bytes dx = ExecuteAllWays(*primitive, {{kArgDst, &y}, {kArgDiffDst, &diff_dst}},
                                    kArgDiffSrc, Garbage(gradients, 7));
    ExpectGradient(Unpack<float>(gradients, dx), CentralDifferences(ToDoubles(x), dy, forward),
                   GradientTolerance(GetParam().traits.is_reference));
  }
};

TEST_P(SoftmaxBackwardTest, CentralDifferencesAlongEveryAxis) {
  for (SoftmaxAlgorithm algorithm : kBoth) {
    for (const Dims& dims :
         {Dims{1, 1}, Dims{3, 10}, Dims{2, 17, 3}, Dims{2, 5, 2, 3}, Dims{1, 3, 2, 2, 3}}) {
      for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis) {
        for (const Layout& layout : LayoutsOf(dims)) {
          SCOPED_TRACE(layout.why);
          ExpectDifferences(algorithm, layout.desc, layout.desc, axis);
        }
        ExpectDifferences(algorithm, Plain(dims), LayoutsOf(dims).back().desc, axis);
      }
    }
  }
}

// More vectors than are in work at once, along the axis and beside it. A lane adds up to 1000
// products whose other factors add up to 1, or numbers of up to 1 that e^y makes small again.
TEST_P(SoftmaxBackwardTest, LongAndManyLines) {
  if (GetParam().traits.is_reference) GTEST_SKIP() << "is what the others are compared with";
  struct Lines {
    Dims dims;
    int axis;
  };
  for (SoftmaxAlgorithm algorithm : kBoth) {
    for (const auto& [dims, axis] :
         {Lines{{3, 1000}, 1}, Lines{{300, 67}, 1}, Lines{{2, 37, 5, 29}, 1},
          Lines{{1, 1000, 9, 16}, 1}, Lines{{5, 300, 7}, 1}, Lines{{40, 130}, 0}}) {
      const MemoryDesc md = Plain(dims);
      SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), " ", md.ToString(), " axis ", axis));
      const SoftmaxDesc desc{PropKind::kBackwardData, {}, md, axis, algorithm, md, md};
      const auto primitive = Create(desc);
      if (!primitive) continue;
      const auto reference = CreateSoftmax(desc, {}, {.only = "softmax/reference_backward"});
      ASSERT_THAT(reference, IsOk());
      const bool is_log = algorithm == SoftmaxAlgorithm::kLogSoftmax;
      const std::vector<float> x = RandomFloats(md.ElementCount(), 1, -3, 3);
      const Bytes y = Pack(md, ToFloats(SoftmaxOf(dims, axis, is_log, ToDoubles(x))));
      const Bytes dy = Pack(md, RandomFloats(md.ElementCount(), 2, -1, 1));
      const Inputs inputs = {{kArgDst, &y}, {kArgDiffDst, &dy}};
      const Bytes dx = ExecuteAllWays(*primitive, inputs, kArgDiffSrc, Garbage(md, 7));
      const Bytes expected =
          Execute(**reference, inputs, kArgDiffSrc, Garbage(md, 7), threading::Team::Serial());
      ExpectGradient(Unpack<float>(md, dx), ToDoubles(Unpack<float>(md, expected)));
    }
  }
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Softmax);

// The gradients of attention and of classifiers are not left to the reference.
TEST(SoftmaxBackwardDispatchTest, PlainTensorsHaveFastRows) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  for (SoftmaxAlgorithm algorithm : kBoth) {
    const MemoryDesc md = Plain({2, 12, 64, 64});
    for (int axis : {1, 3}) {
      const auto primitive =
          CreateSoftmax({PropKind::kBackwardData, {}, md, axis, algorithm, md, md}, {}, {});
      ASSERT_THAT(primitive, IsOk());
      EXPECT_GT((*primitive)->info().code_bytes, 0) << (*primitive)->name();
    }
  }
}

TEST(LogSoftmaxTest, IsTheLogarithmOfSoftmax) {
  for (const Dims& dims : {Dims{3, 10}, Dims{2, 17, 3, 3}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      const auto primitive = CreateSoftmax(
          {PropKind::kForwardTraining, layout.desc, layout.desc, 1, SoftmaxAlgorithm::kLogSoftmax},
          {}, {});
      ASSERT_THAT(primitive, IsOk());
      const std::vector<float> x = RandomFloats(*ElementCount(dims), 1, -30, 30);
      const Bytes src = Pack(layout.desc, x);
      const Bytes dst = Execute(**primitive, {{kArgSrc, &src}}, kArgDst, Garbage(layout.desc, 7),
                                threading::Team::Serial());
      ExpectGradient(Unpack<float>(layout.desc, dst), SoftmaxOf(dims, 1, true, ToDoubles(x)), 1e-6);
    }
  }
}

TEST(SoftmaxBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  constexpr auto kData = PropKind::kBackwardData;
  constexpr auto kSoft = SoftmaxAlgorithm::kSoftmax;
  const MemoryDesc good = Plain({2, 10}), bytes = Plain({2, 10}, DataType::kU8), none;
  const auto status = StatusOfCreating(CreateSoftmax);
  EXPECT_THAT(status({kData, good, good, 1, kSoft, good, good}),
              StatusIs(kInvalid, "src f32:2x10:nc is given to backward_data"));
  EXPECT_THAT(status({kData, none, none, 1, kSoft, good, good}), StatusIs(kInvalid, "dst has no"));
  EXPECT_THAT(status({kData, none, good, 1, kSoft, good, none}),
              StatusIs(kInvalid, "diff_dst is missing"));
  EXPECT_THAT(status({kData, none, good, 2, kSoft, good, good}), StatusIs(kInvalid, "axis 2"));
  EXPECT_THAT(status({kData, none, bytes, 1, kSoft, bytes, bytes}),
              StatusIs(kUnimplemented, "not u8"));
  EXPECT_THAT(status({PropKind::kForwardInference, good, good, 1, kSoft, none, good}),
              StatusIs(kInvalid, "diff_dst"));
}

}  // namespace
}  // namespace tilewire::testing
