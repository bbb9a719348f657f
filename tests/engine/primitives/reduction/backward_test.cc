// SPDX-License-Identifier: Apache-2.0
//
// Backward of reductions by central differences, and where several elements share a result.
#include <algorithm>
#include <cmath>

#include "engine/primitives/reduction/reduction.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

using Algorithm = ReductionAlgorithm;

double Reduced(const ReductionDesc& desc, const Doubles& x) {
  double sum = 0, product = 1, powers = 0;
  for (double value : x) {
    sum += value;
    product *= value;
    powers += std::pow(std::abs(value), desc.p);
  }
  switch (desc.algorithm) {
    case Algorithm::kMax:
      return *std::max_element(x.begin(), x.end());
    case Algorithm::kMin:
      return *std::min_element(x.begin(), x.end());
    case Algorithm::kSum:
      return sum;
    case Algorithm::kMul:
      return product;
    case Algorithm::kMean:
      return sum / static_cast<double>(x.size());
    case Algorithm::kNormLpMax:
      return std::pow(std::max<double>(powers, desc.eps), 1.0 / desc.p);
    case Algorithm::kNormLpSum:
      return std::pow(powers + desc.eps, 1.0 / desc.p);
    case Algorithm::kNormLpPowerPMax:
      return std::max<double>(powers, desc.eps);
    case Algorithm::kNormLpPowerPSum:
      return powers + desc.eps;
  }
  return 0;
}

// The formula, for row-major tensors.
Doubles ReductionOf(const ReductionDesc& desc, const Doubles& x) {
  const MemoryDesc src = Plain(desc.src.dims());
  Doubles y;
  ForEachIndex(desc.dst.dims(), [&](const Dims& index) {
    Doubles group;
    ForEachIndex(src.dims(), [&](const Dims& at) {
      if (BroadcastIndex(desc.dst.dims(), at) == index) group.push_back(x[src.Offset(at)]);
    });
    y.push_back(Reduced(desc, group));
  });
  return y;
}

class ReductionBackwardTest : public RowTest<ReductionDesc> {
 protected:
  ReductionBackwardTest() : RowTest(CreateReduction) {}

  std::optional<std::vector<float>> Gradient(const ReductionDesc& desc, const std::vector<float>& x,
                                             const std::vector<float>& dy) {
    const auto primitive = Create(desc);
    if (!primitive) return std::nullopt;
    const Bytes src = Pack(desc.src, x), diff_dst = Pack(desc.diff_dst, dy);
    return Unpack<float>(desc.diff_src,
                         ExecuteAllWays(*primitive, {{kArgSrc, &src}, {kArgDiffDst, &diff_dst}},
                                        kArgDiffSrc, Garbage(desc.diff_src, 7)));
  }

  void ExpectDifferences(const ReductionDesc& desc) {
    SCOPED_TRACE(absl::StrCat(AlgorithmName(desc.algorithm), " ", desc.src.ToString(), " -> ",
                              desc.dst.ToString(), " p ", desc.p));
    const std::vector<float> x = RandomFloats(desc.src.ElementCount(), 1, -2, 2);
    const std::vector<float> dy = RandomFloats(desc.dst.ElementCount(), 2, -1, 1);
    const auto dx = Gradient(desc, x, dy);
    if (!dx) return;
    const auto forward = [&](const Doubles& at) { return ReductionOf(desc, at); };
    ExpectGradient(*dx, CentralDifferences(ToDoubles(x), dy, forward),
                   GradientTolerance(GetParam().traits.is_reference));
  }

  static ReductionDesc DescOf(Algorithm algorithm, const MemoryDesc& src, const MemoryDesc& dst,
                              float p = 2, float eps = 0) {
    return {algorithm, src, dst, p, eps, PropKind::kBackwardData, src, dst};
  }
};

TEST_P(ReductionBackwardTest, CentralDifferencesOfEveryAlgorithm) {
  for (int algorithm = 0; algorithm < kReductionAlgorithmCount; ++algorithm) {
    for (const Dims& dst : {Dims{2, 1, 3}, Dims{1, 5, 1}, Dims{1, 1, 1}, Dims{2, 5, 3}}) {
      for (float p : {1.0f, 2.0f, 3.5f}) {
        ExpectDifferences(DescOf(static_cast<Algorithm>(algorithm), Plain({2, 5, 3}), Plain(dst), p,
                                 /*eps=*/0.25f));
      }
    }
  }
}

TEST_P(ReductionBackwardTest, EveryLayout) {
  for (const Dims& dims : {Dims{2, 17, 3}, Dims{2, 9, 2, 2}, Dims{1, 3, 2, 2, 3}}) {
    Dims reduced = dims;
    reduced[1] = 1;
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (Algorithm algorithm : {Algorithm::kMean, Algorithm::kMax, Algorithm::kNormLpSum})
        ExpectDifferences(DescOf(algorithm, layout.desc, Plain(reduced)));
    }
  }
}

// Larger ones, of every set of dimensions: the gradient of a sum exactly, that of a mean but for
// the roundings of 1 / n and of its product.
TEST_P(ReductionBackwardTest, SumsAndMeansOfManyElements) {
  const Dims dims = {2, 19, 3, 21};
  for (const Layout& layout : LayoutsOf(dims)) {
    for (uint32_t reduced = 0; reduced < 16; ++reduced) {
      Dims kept = dims;
      for (size_t d = 0; d < kept.size(); ++d) kept[d] = reduced >> d & 1 ? 1 : kept[d];
      const MemoryDesc dst = *OrLayoutOf(*MemoryDesc::CreateAny(kept, DataType::kF32), layout.desc);
      const BroadcastOffsets place(Plain(kept));
      const std::vector<float> dy = RandomFloats(dst.ElementCount(), 2, -1, 1);
      for (Algorithm algorithm : {Algorithm::kSum, Algorithm::kMean}) {
        SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), " ", layout.why, " ", dst.ToString()));
        const auto dx = Gradient(DescOf(algorithm, layout.desc, dst),
                                 RandomFloats(layout.desc.ElementCount(), 1), dy);
        if (!dx) continue;
        const double count = static_cast<double>(layout.desc.ElementCount() / dst.ElementCount());
        const bool is_mean = algorithm == Algorithm::kMean;
        Doubles expected;
        ForEachIndex(dims, [&](const Dims& at) {
          const double gradient = dy[place.Offset(at)];
          expected.push_back(is_mean ? gradient / count : gradient);
        });
        ExpectGradient(*dx, expected, is_mean ? 0x1p-23 : 0);
      }
    }
  }
}

TEST_P(ReductionBackwardTest, EqualsShareAndZerosAreLeftOut) {
  if (!GetParam().traits.is_reference) GTEST_SKIP() << "the row is for sums and means";
  const MemoryDesc src = Plain({1, 4}), dst = Plain({1, 1});
  struct Shared {
    const char* why;
    Algorithm algorithm;
    std::vector<float> x, dx;
    float eps = 0;
  };
  const Shared cases[] = {
      {"one maximum", Algorithm::kMax, {1, 5, 2, 3}, {0, 12, 0, 0}},
      {"two maxima", Algorithm::kMax, {5, 5, 2, 3}, {6, 6, 0, 0}},
      {"all are minima", Algorithm::kMin, {2, 2, 2, 2}, {3, 3, 3, 3}},
      {"a product with a zero", Algorithm::kMul, {2, 0, 3, 5}, {0, 360, 0, 0}},
      {"a product with two", Algorithm::kMul, {2, 0, 0, 5}, {0, 0, 0, 0}},
      {"a norm of zeros", Algorithm::kNormLpSum, {0, 0, 0, 0}, {0, 0, 0, 0}},
      {"eps takes its place", Algorithm::kNormLpMax, {1, 0, 0, 0}, {0, 0, 0, 0}, 4},
  };
  for (const Shared& one : cases) {
    SCOPED_TRACE(one.why);
    const auto dx = Gradient(DescOf(one.algorithm, src, dst, 2, one.eps), one.x, {12});
    if (!dx) return;
    EXPECT_EQ(*dx, one.dx);
  }
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Reduction);

TEST(ReductionBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateReduction);
  const MemoryDesc src = Plain({2, 6}), dst = Plain({2, 1}), none;
  constexpr auto kData = PropKind::kBackwardData;
  const auto with = [&](const MemoryDesc& diff_src, const MemoryDesc& diff_dst) {
    return status({Algorithm::kSum, src, dst, 2, 0, kData, diff_src, diff_dst});
  };
  EXPECT_THAT(with(src, dst), IsOk());
  EXPECT_THAT(with(none, dst), StatusIs(kInvalid, "diff_src is missing"));
  EXPECT_THAT(with(src, src), StatusIs(kInvalid, "diff_dst is f32:2x6"));
  const MemoryDesc halves = Plain({2, 1}, DataType::kF16);
  EXPECT_THAT(status({Algorithm::kSum, src, halves, 2, 0, kData, src, halves}),
              StatusIs(kUnimplemented, "not f16"));
  EXPECT_THAT(status({Algorithm::kSum, src, dst, 2, 0, PropKind::kForwardInference, src, none}),
              StatusIs(kInvalid, "diff_src"));
}

}  // namespace
}  // namespace tilewire::testing
