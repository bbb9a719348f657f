// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/byte_sum.h"

#include <algorithm>
#include <cstring>

namespace tilewire {

int32_t SumOfBytes(const uint8_t* bytes, int64_t count, bool is_signed) {
  constexpr int kMostLanes = 16;
  using Bytes16 = uint8_t __attribute__((vector_size(kMostLanes)));
  constexpr int64_t kMostAtOnce = 128 * kMostLanes;  // whose sums fit 16 bits
  using Words8 = uint16_t __attribute__((vector_size(kMostLanes)));
  const uint8_t flip = is_signed ? 0x80 : 0;
  uint32_t sum = 0;
  int64_t i = 0;
  while (count - i >= kMostLanes) {
    const int64_t end = i + std::min(count - i, kMostAtOnce) / kMostLanes * kMostLanes;
    Words8 sums = {};
    for (; i < end; i += kMostLanes) {
      Bytes16 some;
      std::memcpy(&some, bytes + i, kMostLanes);
      some ^= flip;
      Words8 pairs;
      std::memcpy(&pairs, &some, kMostLanes);
      sums += (pairs & 0xFF) + (pairs >> 8);
    }
    for (int lane = 0; lane < kMostLanes / 2; ++lane) sum += sums[lane];
  }
  for (; i < count; ++i) sum += bytes[i] ^ flip;
  return static_cast<int32_t>(sum - (is_signed ? 128u * static_cast<uint32_t>(count) : 0u));
}

}  // namespace tilewire
