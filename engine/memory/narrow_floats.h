// SPDX-License-Identifier: Apache-2.0
//
// Between f32 and the bits of f16 and bf16. To these, numbers are rounded to nearest even. Pure
// functions; thread-safe. Source: IEEE 754.
#ifndef ENGINE_MEMORY_NARROW_FLOATS_H_
#define ENGINE_MEMORY_NARROW_FLOATS_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/memory/data_type.h"

namespace tilewire {

inline float WidenF16(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = half >> 10 & 0x1F, fraction = half & 0x3FF;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 0x1F ? 0xFF : exponent + 127 - 15;
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

inline float WidenBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

// NaN becomes a quiet NaN.
inline uint16_t ToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  // Adding half of the last kept bit, less one when that bit is even, rounds to nearest even.
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// The bits that kF16 or kBf16 holds instead.
inline uint16_t NarrowAs(DataType type, float value) {
  if (type == DataType::kBf16) return ToBf16(value);
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

// Widens bits of kF16 or kBf16.
inline float WidenAs(DataType type, uint16_t bits) {
  return type == DataType::kF16 ? WidenF16(bits) : WidenBf16(bits);
}

// The number that `type` holds instead: the same for f32 and f64.
inline float RoundTo(DataType type, float value) {
  if (type == DataType::kF16) return static_cast<float>(static_cast<_Float16>(value));
  if (type != DataType::kBf16 || std::isnan(value)) return value;
  return WidenBf16(ToBf16(value));
}

}  // namespace tilewire

#endif  // ENGINE_MEMORY_NARROW_FLOATS_H_
