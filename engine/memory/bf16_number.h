// SPDX-License-Identifier: Apache-2.0
//
// An element of kBf16 in plain loops: its bits in memory, a float in arithmetic.
#ifndef ENGINE_MEMORY_BF16_NUMBER_H_
#define ENGINE_MEMORY_BF16_NUMBER_H_

#include <cstdint>

#include "engine/memory/narrow_floats.h"

namespace tilewire {

struct Bf16Number {
  uint16_t bits;
  operator float() const { return WidenBf16(bits); }
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_BF16_NUMBER_H_
