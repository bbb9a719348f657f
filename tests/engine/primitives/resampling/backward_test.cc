// SPDX-License-Identifier: Apache-2.0
//
// Backward of resampling: the transpose of forward, element by element.
#include <algorithm>
#include <cmath>

#include "engine/primitives/resampling/resampling.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

namespace tilewire::testing {
namespace {

// The weight of input i for output o along one dimension.
double WeightOf(ResamplingAlgorithm algorithm, int64_t inputs, int64_t outputs, int64_t i,
                int64_t o) {
  const double s = (o + 0.5) * inputs / outputs - 0.5;
  if (algorithm == ResamplingAlgorithm::kNearest)
    return std::clamp<int64_t>(std::llround(s), 0, inputs - 1) == i ? 1 : 0;
  const double at = std::clamp<double>(s, 0, inputs - 1);
  return std::max(0.0, 1 - std::abs(at - i));
}

class ResamplingBackwardTest : public RowTest<ResamplingDesc> {
 protected:
  ResamplingBackwardTest() : RowTest(CreateResampling) {}

  void ExpectTransposed(ResamplingAlgorithm algorithm, const MemoryDesc& src,
                        const MemoryDesc& dst) {
    SCOPED_TRACE(
        absl::StrCat(AlgorithmName(algorithm), " ", src.ToString(), " -> ", dst.ToString()));
    const auto primitive = Create({PropKind::kBackwardData, algorithm, src, dst});
    if (!primitive) return;
    const std::vector<float> dy = RandomFloats(dst.ElementCount(), 2, -1, 1);
    const Bytes diff_dst = Pack(dst, dy);
    const Bytes dx =
        ExecuteAllWays(*primitive, {{kArgDiffDst, &diff_dst}}, kArgDiffSrc, Garbage(src, 7));
    Doubles expected;
    const MemoryDesc plain = Plain(dst.dims());
    ForEachIndex(src.dims(), [&](const Dims& index) {
      double sum = 0;
      ForEachIndex(dst.dims(), [&](const Dims& at) {
        double weight = at[0] == index[0] && at[1] == index[1] ? 1 : 0;
        for (int d = 2; d < src.rank() && weight != 0; ++d)
          weight *= WeightOf(algorithm, src.dim(d), dst.dim(d), index[d], at[d]);
        sum += weight * dy[plain.Offset(at)];
      });
      expected.push_back(sum);
    });
    ExpectGradient(Unpack<float>(src, dx), expected, 1e-6);
  }
};

TEST_P(ResamplingBackwardTest, IsTheTransposeOfForward) {
  struct Sizes {
    Dims src, dst;
  };
  const Sizes cases[] = {{{2, 3, 5}, {2, 3, 12}},
                         {{1, 17, 4, 3}, {1, 17, 8, 7}},
                         {{1, 2, 7, 7}, {1, 2, 3, 2}},
                         {{2, 2, 1, 4}, {2, 2, 5, 4}},
                         {{1, 2, 2, 3, 2}, {1, 2, 4, 2, 3}}};
  for (const Sizes& one : cases) {
    const std::vector<Layout> srcs = LayoutsOf(one.src), dsts = LayoutsOf(one.dst);
    ASSERT_EQ(srcs.size(), dsts.size());
    for (ResamplingAlgorithm algorithm :
         {ResamplingAlgorithm::kNearest, ResamplingAlgorithm::kLinear}) {
      for (size_t i = 0; i < srcs.size(); ++i) {
        SCOPED_TRACE(srcs[i].why);
        ExpectTransposed(algorithm, srcs[i].desc, dsts[i].desc);
      }
    }
  }
}

TEST_P(ResamplingBackwardTest, ManyRowsOfNothingTakeNoTime) {
  const MemoryDesc src = Plain({int64_t{1} << 40, 1, 5, 0}),
                   dst = Plain({int64_t{1} << 40, 1, 5, 0});
  ExpectTransposed(ResamplingAlgorithm::kNearest, src, dst);
}

// Rows of more outputs than are added up at once, channels beyond those that are, and inputs that
// no output samples.
TEST_P(ResamplingBackwardTest, LongRowsAndManyChannels) {
  struct Sizes {
    const char* tag;
    Dims src, dst;
  };
  const Sizes cases[] = {{"ncw", {1, 1, 1500}, {1, 1, 3100}},  {"nwc", {1, 37, 40}, {1, 37, 300}},
                         {"ncw", {1, 2, 300}, {1, 2, 7}},      {"nwc", {1, 20, 3}, {1, 20, 150}},
                         {"nwc", {1, 17, 8}, {1, 17, 403}},    {"nwc", {1, 17, 8}, {1, 17, 465}},
                         {"nchw", {1, 1, 2, 1}, {1, 1, 3, 90}}};
  for (const Sizes& one : cases) {
    for (ResamplingAlgorithm algorithm :
         {ResamplingAlgorithm::kNearest, ResamplingAlgorithm::kLinear})
      ExpectTransposed(algorithm, Tagged(one.src, one.tag), Tagged(one.dst, one.tag));
  }
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Resampling);

TEST(ResamplingBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateResampling);
  constexpr auto kData = PropKind::kBackwardData;
  constexpr auto kLinear = ResamplingAlgorithm::kLinear;
  const MemoryDesc src = Plain({1, 2, 3}), dst = Plain({1, 2, 6});
  const MemoryDesc any_src = *MemoryDesc::CreateAny({1, 2, 3}, DataType::kF32);
  EXPECT_THAT(status({kData, kLinear, src, MemoryDesc()}), StatusIs(kInvalid, "diff_dst"));
  EXPECT_THAT(status({kData, kLinear, MemoryDesc(), dst}), StatusIs(kInvalid, "src is missing"));
  EXPECT_THAT(status({kData, kLinear, any_src, dst}), IsOk());
  EXPECT_THAT(status({kData, kLinear, any_src, *MemoryDesc::CreateAny({1, 2, 6}, DataType::kF32)}),
              IsOk());
  EXPECT_THAT(status({kData, kLinear, Plain({0, 2, 0}), Plain({0, 2, 6})}), IsOk());
  const MemoryDesc bytes = Plain({1, 2, 3}, DataType::kU8);
  EXPECT_THAT(status({kData, kLinear, bytes, bytes}), StatusIs(kUnimplemented, "not u8"));
}

}  // namespace
}  // namespace tilewire::testing
