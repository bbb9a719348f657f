// SPDX-License-Identifier: Apache-2.0
#include "engine/training/dropout.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/training/blocks.h"
#include "engine/training/philox.h"

namespace tilewire::training {

void FillMask(const MaskSource& source, absl::Span<float> mask, const threading::Team& team) {
  static_assert(Blocks::kElements % 4 == 0, "a block begins with the first word of a counter");
  const int64_t elements = static_cast<int64_t>(mask.size()) / source.images;
  const auto least = static_cast<uint32_t>(std::ceil(static_cast<double>(source.ratio) * 0x1p24));
  const auto kept = static_cast<float>(1 / (1 - static_cast<double>(source.ratio)));
  const PhiloxKey key = {static_cast<uint32_t>(source.seed),
                         static_cast<uint32_t>(source.seed >> 32)};
  const auto update = static_cast<uint32_t>(source.update);
  const std::vector<int64_t> sizes(source.images, elements);
  Blocks(sizes).ForEach(team, [&](int64_t, size_t image, int64_t first, int64_t count) {
    const int64_t end = first + count;
    float* const of_image = mask.data() + static_cast<int64_t>(image) * elements;
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
