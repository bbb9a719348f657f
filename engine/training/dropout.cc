// SPDX-License-Identifier: Apache-2.0
#include "engine/training/dropout.h"

#include <algorithm>
#include <cmath>

#include "engine/base/checked_math.h"
#include "engine/training/philox.h"

namespace tilewire::training {
namespace {

// Elements of one piece of work; a multiple of the four of a counter.
constexpr int64_t kElementsOfPiece = 16384;

}  // namespace

void FillMask(const MaskSource& source, absl::Span<float> mask, const threading::Team& team) {
  const int64_t elements = static_cast<int64_t>(mask.size()) / source.images;
  const int64_t pieces = DivUp(elements, kElementsOfPiece);
  const auto least = static_cast<uint32_t>(std::ceil(static_cast<double>(source.ratio) * 0x1p24));
  const auto kept = static_cast<float>(1 / (1 - static_cast<double>(source.ratio)));
  const PhiloxKey key = {static_cast<uint32_t>(source.seed),
                         static_cast<uint32_t>(source.seed >> 32)};
  const auto update = static_cast<uint32_t>(source.update);
  team.ParallelFor(source.images * pieces, [&](int64_t piece) {
    const int64_t image = piece / pieces;
    const int64_t first = piece % pieces * kElementsOfPiece;
    const int64_t end = std::min(first + kElementsOfPiece, elements);
    float* const of_image = mask.data() + image * elements;
    for (int64_t begin = first; begin < end; begin += 4) {
      const PhiloxCounter words = Philox(
          {static_cast<uint32_t>(begin / 4), static_cast<uint32_t>(image), source.node, update},
          key);
      for (int64_t e = begin; e < std::min(begin + 4, end); ++e)
        of_image[e] = words[e - begin] >> 8 < least ? 0 : kept;
    }
  });
}

}  // namespace tilewire::training
