// SPDX-License-Identifier: Apache-2.0
//
// Gradients whose bits do not depend on the batch:
//
//   of src      an image alone, in a primitive for a batch of one, has the bits of the same image
//               among others
//   of weights  a batch that is cut between images, of which each part but the first is added to
//               the gradient before by a sum post-op, has the bits of the whole
//
// Each primitive's header says which of them it promises.
#ifndef TESTS_ENGINE_PRIMITIVES_BATCHED_GRADIENT_TEST_H_
#define TESTS_ENGINE_PRIMITIVES_BATCHED_GRADIENT_TEST_H_

#include <algorithm>
#include <numeric>
#include <vector>

#include "engine/base/checked_math.h"
#include "tests/engine/primitives/gradient_test.h"

namespace tilewire::testing {

// Images [first, first + count) of `batch`, whose numbers follow each other.
inline std::vector<float> ImagesOf(const std::vector<float>& all, int64_t batch, int64_t first,
                                   int64_t count) {
  const auto image = static_cast<int64_t>(all.size()) / batch;
  return {all.begin() + first * image, all.begin() + (first + count) * image};
}

template <typename Desc>
class BatchedGradientTest : public GradientTest<Desc> {
 protected:
  using GradientTest<Desc>::GradientTest;

  bool Runs(PropKind kind) const {
    const std::vector<PropKind> kinds = KindsOf(this->GetParam());
    return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
  }

  // desc_of(n) is the forward descriptor for n images.
  template <typename DescOf>
  void ExpectBitsOfImagesAlone(int64_t batch, const DescOf& desc_of) {
    const Desc all = Backward(desc_of(batch), PropKind::kBackwardData);
    const auto together = this->Create(all);
    const auto alone = this->Create(Backward(desc_of(1), PropKind::kBackwardData));
    ASSERT_EQ(together.has_value(), alone.has_value())
        << "the batch decides whether the row serves";
    if (!together) return;
    const ByArgument operands = OperandsOf(all);
    const std::vector<float> expected = RunGradient(*together, operands).at(kArgDiffSrc);
    for (int64_t n = 0; n < batch; n += DivUp(batch, kMostImages)) {
      ByArgument image = operands;
      image[kArgDiffDst] = ImagesOf(operands.at(kArgDiffDst), batch, n, 1);
      const std::vector<float> found = RunGradient(*alone, image).at(kArgDiffSrc);
      EXPECT_EQ(BitsOf(found), BitsOf(ImagesOf(expected, batch, n, 1)))
          << "image " << n << " of " << batch;
    }
  }

  // `parts`: the images of each.
  template <typename DescOf>
  void ExpectBitsOfCuts(const std::vector<int64_t>& parts, const DescOf& desc_of) {
    const int64_t batch = std::accumulate(parts.begin(), parts.end(), int64_t{0});
    const Desc all = Backward(desc_of(batch), PropKind::kBackwardWeights);
    Attributes adds;
    ASSERT_THAT(adds.post_ops.Append(SumPostOp{}), IsOk());
    const auto together = this->Create(all);
    const ByArgument operands = OperandsOf(all);
    ByArgument sums;
    for (int64_t first = 0; const int64_t count : parts) {
      const auto part = this->Create(Backward(desc_of(count), PropKind::kBackwardWeights),
                                     first == 0 ? Attributes() : adds);
      ASSERT_EQ(together.has_value(), part.has_value());
      if (!part) continue;
      for (int arg : {kArgSrc, kArgDiffDst})
        sums[arg] = ImagesOf(operands.at(arg), batch, first, count);
      for (auto& [arg, values] : RunGradient(*part, sums)) sums[arg] = values;
      first += count;
    }
    if (!together) return;
    for (const auto& [arg, values] : RunGradient(*together, operands))
      EXPECT_EQ(BitsOf(sums.at(arg)), BitsOf(values)) << ArgName(arg);
  }

 private:
  static constexpr int64_t kMostImages = 9;  // that are computed alone

  static ByArgument OperandsOf(const Desc& desc) {
    return RandomOperands(/*integers=*/false, desc.src.ElementCount(), desc.weights.ElementCount(),
                          desc.dst.ElementCount());
  }
};

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_BATCHED_GRADIENT_TEST_H_
