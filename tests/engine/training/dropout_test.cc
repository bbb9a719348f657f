// SPDX-License-Identifier: Apache-2.0
//
// Masks of dropout: the words of Philox by its authors' vectors, how often elements are dropped,
// and what a mask depends on.
#include "engine/training/dropout.h"

#include <cmath>
#include <set>
#include <vector>

#include "engine/training/philox.h"
#include "gtest/gtest.h"

namespace tilewire::training {
namespace {

using Mask = std::vector<float>;

Mask MaskOf(const MaskSource& source, int64_t elements, int threads = 1) {
  static threading::Arena* const arena = new threading::Arena(7);
  Mask mask(source.images * elements, -1);
  FillMask(source, absl::MakeSpan(mask), threading::Team(arena, threads));
  return mask;
}

double ShareOfZeros(const Mask& mask) {
  int64_t zeros = 0;
  for (float element : mask) zeros += element == 0 ? 1 : 0;
  return static_cast<double>(zeros) / static_cast<double>(mask.size());
}

// kat_vectors of Random123 1.14, philox4x32 of 10 rounds.
TEST(PhiloxTest, WordsAreThoseOfItsAuthors) {
  struct {
    PhiloxCounter counter;
    PhiloxKey key;
    PhiloxCounter words;
  } const cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& one : cases) EXPECT_EQ(Philox(one.counter, one.key), one.words);
}

TEST(DropoutTest, ElementsAreTheWordsOfTheirCounters) {
  const MaskSource source{
      .ratio = 0.25f, .seed = 0x123456789abcdef0, .node = 7, .update = 3, .images = 3};
  constexpr int64_t kElements = 18;  // not a multiple of the words of a counter
  const Mask mask = MaskOf(source, kElements);
  for (uint32_t image = 0; image < 3; ++image) {
    for (uint32_t e = 0; e < kElements; ++e) {
      const PhiloxCounter words = Philox({e / 4, image, 7, 3}, {0x9abcdef0, 0x12345678});
      const bool is_dropped = words[e % 4] / 4294967296.0 < 0.25;
      EXPECT_EQ(mask[image * kElements + e], is_dropped ? 0 : 4 / 3.0f) << image << " " << e;
    }
  }
}

// The number of dropped elements is binomial: of n elements within 5 standard deviations.
TEST(DropoutTest, TheShareThatIsDroppedIsTheRatio) {
  constexpr int64_t kImages = 16, kElements = 50000;
  for (const float ratio : {0.01f, 0.1f, 0.3f, 0.5f, 0.9f}) {
    const Mask mask = MaskOf({.ratio = ratio, .seed = 5, .images = kImages}, kElements);
    const double bound = 5 * std::sqrt(ratio * (1 - ratio) / mask.size());
    EXPECT_NEAR(ShareOfZeros(mask), ratio, bound);
    double sum = 0;
    for (float element : mask) sum += element;
    EXPECT_NEAR(sum / mask.size(), 1, bound / (1 - ratio)) << "the mean is kept";
    EXPECT_EQ(std::set<float>(mask.begin(), mask.end()).size(), 2);
  }
}

// Neighbours along elements, images, nodes and updates are dropped independently: both of a pair as
// often as the square of the ratio.
TEST(DropoutTest, NeighboursAreIndependent) {
  constexpr int64_t kImages = 8, kElements = 40000;
  const MaskSource source{.ratio = 0.5f, .seed = 1, .node = 9, .update = 4, .images = kImages};
  const Mask mask = MaskOf(source, kElements);
  const auto expect_independent = [&](const Mask& other, int64_t shift, const char* of) {
    int64_t both = 0;
    const int64_t pairs = static_cast<int64_t>(mask.size()) - shift;
    for (int64_t i = 0; i < pairs; ++i) both += mask[i] == 0 && other[i + shift] == 0 ? 1 : 0;
    EXPECT_NEAR(static_cast<double>(both) / pairs, 0.25, 5 * std::sqrt(0.1875 / pairs)) << of;
  };
  for (int64_t shift = 1; shift <= 4; ++shift) expect_independent(mask, shift, "elements");
  expect_independent(mask, kElements, "images");
  for (const auto change : {+[](MaskSource* s) { ++s->seed; }, +[](MaskSource* s) { ++s->node; },
                            +[](MaskSource* s) { ++s->update; },
                            +[](MaskSource* s) { s->seed += uint64_t{1} << 32; }}) {
    MaskSource other = source;
    change(&other);
    expect_independent(MaskOf(other, kElements), 0, "a source");
  }
}

TEST(DropoutTest, AMaskDependsOnNeitherThreadsNorOtherImages) {
  for (const int64_t elements : {1, 3, 4, 16384, 16385, 40001}) {
    const MaskSource source{.ratio = 0.4f, .seed = 2, .node = 1, .update = 8, .images = 5};
    const Mask whole = MaskOf(source, elements);
    for (const int threads : {2, 7}) EXPECT_EQ(whole, MaskOf(source, elements, threads));
    MaskSource fewer = source;
    fewer.images = 2;
    const Mask first = MaskOf(fewer, elements);
    EXPECT_TRUE(std::equal(first.begin(), first.end(), whole.begin())) << elements;
  }
}

}  // namespace
}  // namespace tilewire::training
