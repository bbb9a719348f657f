// SPDX-License-Identifier: Apache-2.0
//
// Backward of local response normalization by central differences.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/primitives/lrn/lrn.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"
#include "tests/support/padded_tail.h"

namespace tilewire::testing {
namespace {

// The formula, for a row-major tensor.
Doubles LrnOf(const LrnDesc& desc, const Doubles& x) {
  const MemoryDesc md = Plain(desc.src.dims());
  const bool across = desc.algorithm == LrnAlgorithm::kAcrossChannels;
  const int first = across ? 1 : 2, last = across ? 2 : md.rank();
  const int64_t reach = (desc.local_size - 1) / 2;
  double summands = 1;
  for (int d = first; d < last; ++d) summands *= static_cast<double>(desc.local_size);
  Doubles y;
  ForEachIndex(md.dims(), [&](const Dims& index) {
    double squares = 0;
    Dims box(index.size(), 1);
    for (int d = first; d < last; ++d) box[d] = 2 * reach + 1;
    ForEachIndex(box, [&](Dims at) {
      for (int d = 0; d < md.rank(); ++d) {
        at[d] += index[d] - (d >= first && d < last ? reach : 0);
        if (at[d] < 0 || at[d] >= md.dim(d)) return;
      }
      squares += x[md.Offset(at)] * x[md.Offset(at)];
    });
    y.push_back(x[md.Offset(index)] *
                std::pow(desc.k + desc.alpha / summands * squares, -desc.beta));
  });
  return y;
}

class LrnBackwardTest : public RowTest<LrnDesc> {
 protected:
  LrnBackwardTest() : RowTest(CreateLrn) {}

  static LrnDesc DescOf(LrnAlgorithm algorithm, const MemoryDesc& md, int64_t local_size,
                        float beta) {
    return {PropKind::kBackwardData, algorithm, md, {}, local_size, 0.7f, beta, 1.5f, md, md};
  }

  void ExpectWhatTheReferenceHas(const LrnDesc& desc) {
    const auto primitive = Create(desc);
    if (!primitive) return;
    const auto reference = CreateLrn(desc, {}, {.only = "lrn/reference_backward"});
    ASSERT_THAT(reference, IsOk());
    const MemoryDesc& md = desc.src;
    const Bytes src = Pack(md, RandomFloats(md.ElementCount(), 1, -2, 2));
    const Bytes diff_dst = Pack(md, RandomFloats(md.ElementCount(), 2, -1, 1));
    const Inputs inputs = {{kArgSrc, &src}, {kArgDiffDst, &diff_dst}};
    const Bytes dx = ExecuteAllWays(*primitive, inputs, kArgDiffSrc, Garbage(md, 7));
    const Bytes expected =
        Execute(**reference, inputs, kArgDiffSrc, Garbage(md, 7), threading::Team::Serial());
    EXPECT_TRUE(PaddingIsZero(md, dx.data()));
    ExpectGradient(Unpack<float>(md, dx), ToDoubles(Unpack<float>(md, expected)));
  }

  void ExpectDifferences(LrnAlgorithm algorithm, const MemoryDesc& md, int64_t local_size,
                         float beta) {
    SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), " ", md.ToString(), " ", local_size));
    const LrnDesc desc = DescOf(algorithm, md, local_size, beta);
    const auto primitive = Create(desc);
    if (!primitive) return;
    const std::vector<float> x = RandomFloats(md.ElementCount(), 1, -2, 2);
    const std::vector<float> dy = RandomFloats(md.ElementCount(), 2, -1, 1);
    const Bytes src = Pack(md, x), diff_dst = Pack(md, dy);
    const Bytes dx = ExecuteAllWays(*primitive, {{kArgSrc, &src}, {kArgDiffDst, &diff_dst}},
                                    kArgDiffSrc, Garbage(md, 7));
    const auto forward = [&](const Doubles& at) { return LrnOf(desc, at); };
    ExpectGradient(Unpack<float>(md, dx), CentralDifferences(ToDoubles(x), dy, forward));
  }
};

TEST_P(LrnBackwardTest, CentralDifferencesInEveryLayout) {
  for (const Dims& dims : {Dims{1, 17, 2}, Dims{2, 5, 2, 3}, Dims{1, 2, 2, 3, 2}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      SCOPED_TRACE(layout.why);
      for (int64_t local_size : {1, 4, 5, 7}) {
        ExpectDifferences(LrnAlgorithm::kAcrossChannels, layout.desc, local_size, 0.75f);
        ExpectDifferences(LrnAlgorithm::kWithinChannel, layout.desc, local_size, 0.75f);
      }
    }
    ExpectDifferences(LrnAlgorithm::kAcrossChannels, Plain(dims), 5, 1.25f);
  }
  ExpectDifferences(LrnAlgorithm::kAcrossChannels, Plain({3, 11}), 3, 0.75f);
}

// More pixels than a piece of work has, more blocks than are in work at once, and windows as wide
// as blocks. 33 squares or terms at most are added up, each of less than 4, and the powers err by a
// few units in the last place.
TEST_P(LrnBackwardTest, ManyPixelsAndBlocks) {
  if (GetParam().traits.is_reference) GTEST_SKIP() << "is what the others are compared with";
  struct Window {
    int64_t size;
    float beta;
  };
  for (const Dims& dims : {Dims{1, 40, 9, 9}, Dims{1, 13, 520}, Dims{3, 100, 2}}) {
    for (const Layout& layout : LayoutsOf(dims)) {
      for (const auto& [size, beta] : {Window{3, 0.75f}, Window{5, 0.5f}, Window{7, 0.75f},
                                       Window{9, 1}, Window{17, 1.25f}, Window{33, 0.75f}}) {
        SCOPED_TRACE(absl::StrCat(layout.why, " ", size, " ", beta));
        ExpectWhatTheReferenceHas(DescOf(LrnAlgorithm::kAcrossChannels, layout.desc, size, beta));
        if (size > 5) continue;
        ExpectWhatTheReferenceHas(DescOf(LrnAlgorithm::kWithinChannel, layout.desc, size, beta));
      }
    }
  }
}

TEST_P(LrnBackwardTest, InfinityDoesNotReachTheTail) {
  const MemoryDesc md = GetParam().isa.Includes(cpu::Isa::kAvx512)
                            ? Tagged({1, 11, 2, 2}, "nChw16c")
                            : Tagged({1, 11, 2, 2}, "nChw8c");
  for (LrnAlgorithm algorithm : {LrnAlgorithm::kAcrossChannels, LrnAlgorithm::kWithinChannel}) {
    const auto primitive = Create(DescOf(algorithm, md, 5, 0.75f));
    if (!primitive) continue;
    std::vector<float> x(md.ElementCount(), 1);
    x[42] = std::numeric_limits<float>::infinity();
    const Bytes src = Pack(md, x), diff_dst = Pack(md, std::vector<float>(md.ElementCount(), 1));
    const Bytes dx = ExecuteAllWays(*primitive, {{kArgSrc, &src}, {kArgDiffDst, &diff_dst}},
                                    kArgDiffSrc, Garbage(md, 7));
    EXPECT_TRUE(PaddingIsZero(md, dx.data()));
  }
}

// Powers of small bases are large, and infinity times its inverse root is not a number.
TEST_P(LrnBackwardTest, SmallBasesAndInfiniteOnes) {
  const MemoryDesc md = GetParam().isa.Includes(cpu::Isa::kAvx512)
                            ? Tagged({1, 32, 5, 5}, "nChw16c")
                            : Tagged({1, 32, 5, 5}, "nChw8c");
  const Bytes diff_dst = Pack(md, std::vector<float>(md.ElementCount(), 1));
  const auto gradient = [&](const LrnDesc& desc, float value) {
    const auto primitive = Create(desc);
    if (!primitive) return std::vector<float>();
    const Bytes src = Pack(md, std::vector<float>(md.ElementCount(), value));
    return Unpack<float>(md, ExecuteAllWays(*primitive, {{kArgSrc, &src}, {kArgDiffDst, &diff_dst}},
                                            kArgDiffSrc, Garbage(md, 7)));
  };
  for (LrnAlgorithm algorithm : {LrnAlgorithm::kAcrossChannels, LrnAlgorithm::kWithinChannel}) {
    LrnDesc desc = DescOf(algorithm, md, 5, 0.75f);
    for (float value : gradient(desc, 1e30f)) ASSERT_TRUE(std::isfinite(value)) << value;
    desc.k = 0x1p-70f;
    const double expected = std::pow(desc.k, -0.75);
    for (float value : gradient(desc, 0)) ASSERT_NEAR(value, expected, 1e-6 * expected);
  }
}

// It is in the bases of its neighbours, and so in terms of the gradients of theirs.
TEST_P(LrnBackwardTest, NotANumberReachesWhatTheReferenceSays) {
  const Dims dims = {1, 40, 2, 3};
  for (const Layout& layout : LayoutsOf(dims)) {
    SCOPED_TRACE(layout.why);
    const MemoryDesc& md = layout.desc;
    for (LrnAlgorithm algorithm : {LrnAlgorithm::kAcrossChannels, LrnAlgorithm::kWithinChannel}) {
      const LrnDesc desc = DescOf(algorithm, md, 5, 0.75f);
      const auto primitive = Create(desc);
      if (!primitive) continue;
      const auto reference = CreateLrn(desc, {}, {.only = "lrn/reference_backward"});
      ASSERT_THAT(reference, IsOk());
      std::vector<float> x(md.ElementCount(), 1);
      x[Plain(dims).Offset({0, 14, 1, 1})] = std::numeric_limits<float>::quiet_NaN();
      const Bytes src = Pack(md, x), diff_dst = Pack(md, std::vector<float>(x.size(), 1));
      const Inputs inputs = {{kArgSrc, &src}, {kArgDiffDst, &diff_dst}};
      const std::vector<float> dx =
          Unpack<float>(md, ExecuteAllWays(*primitive, inputs, kArgDiffSrc, Garbage(md, 7)));
      const std::vector<float> expected = Unpack<float>(
          md, Execute(**reference, inputs, kArgDiffSrc, Garbage(md, 7), threading::Team::Serial()));
      for (size_t i = 0; i < dx.size(); ++i)
        ASSERT_EQ(std::isnan(dx[i]), std::isnan(expected[i])) << "element " << i;
    }
  }
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Lrn);

// A gradient larger than caches is written past them where it begins with a line. The reference
// takes its time, and computes the first image.
TEST(LrnBackwardLargeTest, HasTheSameBitsWhereverItBegins) {
  for (const auto& [isa, tag] :
       {std::pair(cpu::Isa::kAvx512, "nChw16c"), std::pair(cpu::Isa::kAvx2, "nChw8c")}) {
    if (!cpu::Supports(isa)) continue;
    SCOPED_TRACE(tag);
    const auto of_images = [tag = tag](int64_t images) {
      const MemoryDesc md = Tagged({images, 48, 150, 150}, tag);
      constexpr auto kAcross = LrnAlgorithm::kAcrossChannels;
      return LrnDesc{PropKind::kBackwardData, kAcross, md, {}, 3, 0.7f, 0.75f, 1, md, md};
    };
    const LrnDesc desc = of_images(4), first = of_images(1);
    const MemoryDesc& md = desc.src;
    const auto primitive = CreateLrn(desc, {}, {.max_isa = isa});
    const auto small = CreateLrn(first, {}, {.max_isa = isa});
    const auto reference = CreateLrn(first, {}, {.only = "lrn/reference_backward"});
    ASSERT_THAT(primitive, IsOk());
    ASSERT_THAT(small, IsOk());
    ASSERT_THAT(reference, IsOk());
    EXPECT_GT((*primitive)->info().code_bytes, (*small)->info().code_bytes) << "both forms";
    const Bytes src = Pack(md, RandomFloats(md.ElementCount(), 1, -2, 2));
    const Bytes dy = Pack(md, RandomFloats(md.ElementCount(), 2, -1, 1));
    std::vector<Bytes> found;
    for (size_t offset : {0, 16}) {
      auto lines = AlignedBuffer::Allocate(md.SizeBytes() + offset);
      ASSERT_TRUE(lines.ok());
      ExecuteArgs args;
      args.Set(kArgSrc, src.data()).Set(kArgDiffDst, dy.data());
      args.Set(kArgDiffSrc, lines->data() + offset);
      ASSERT_THAT((*primitive)->Execute(args, threading::Team::Serial()), IsOk());
      const auto* const begin = reinterpret_cast<const uint8_t*>(lines->data() + offset);
      found.emplace_back(begin, begin + md.SizeBytes());
    }
    EXPECT_TRUE(found[0] == found[1]);
    const Bytes expected = Execute(**reference, {{kArgSrc, &src}, {kArgDiffDst, &dy}}, kArgDiffSrc,
                                   Garbage(first.src, 7), threading::Team::Serial());
    ExpectGradient(Unpack<float>(first.src, found[0]),
                   ToDoubles(Unpack<float>(first.src, expected)));
  }
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
}

// The layers of networks are not left to the reference.
TEST(LrnBackwardDispatchTest, BlockedLayersHaveFastRows) {
  if (!cpu::Supports(cpu::Isa::kAvx2)) GTEST_SKIP() << "the CPU lacks avx2";
  const MemoryDesc md = Tagged({2, 64, 5, 5}, "nChw8c");
  const auto primitive = CreateLrn(
      {PropKind::kBackwardData, LrnAlgorithm::kAcrossChannels, md, {}, 5, 1, 0.75f, 1, md, md}, {},
      {.max_isa = cpu::Isa::kAvx2});
  ASSERT_THAT(primitive, IsOk());
  EXPECT_GT((*primitive)->info().code_bytes, 0) << (*primitive)->name();
}

TEST(LrnBackwardErrorsTest, CreationNamesWhatDoesNotFit) {
  const auto status = StatusOfCreating(CreateLrn);
  const MemoryDesc md = Plain({2, 4, 3, 3});
  LrnDesc desc;
  desc.prop_kind = PropKind::kBackwardData;
  desc.src = md;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "lrn: diff_dst is missing"));
  desc.diff_src = desc.diff_dst = md;
  EXPECT_THAT(status(desc), IsOk());
  desc.dst = md;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "given to backward_data"));
  desc.prop_kind = PropKind::kForwardInference;
  EXPECT_THAT(status(desc), StatusIs(kInvalid, "given to forward_inference"));
}

}  // namespace
}  // namespace tilewire::testing
