// SPDX-License-Identifier: Apache-2.0
//
// Backward of local response normalization by central differences.
#include <algorithm>
#include <cmath>

#include "engine/primitives/lrn/lrn.h"
#include "tests/engine/primitives/gradients.h"
#include "tests/engine/primitives/row_test.h"

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

  void ExpectDifferences(LrnAlgorithm algorithm, const MemoryDesc& md, int64_t local_size,
                         float beta) {
    SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), " ", md.ToString(), " ", local_size));
    LrnDesc desc{PropKind::kBackwardData, algorithm, md, {}, local_size, 0.7f, beta, 1.5f, md, md};
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
      for (int64_t local_size : {1, 4, 5}) {
        ExpectDifferences(LrnAlgorithm::kAcrossChannels, layout.desc, local_size, 0.75f);
        ExpectDifferences(LrnAlgorithm::kWithinChannel, layout.desc, local_size, 0.75f);
      }
    }
    ExpectDifferences(LrnAlgorithm::kAcrossChannels, Plain(dims), 5, 1.25f);
  }
  ExpectDifferences(LrnAlgorithm::kAcrossChannels, Plain({3, 11}), 3, 0.75f);
}

TILEWIRE_TEST_EVERY_BACKWARD_ROW(Lrn);

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
