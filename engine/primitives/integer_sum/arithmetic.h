// SPDX-License-Identifier: Apache-2.0
//
// One element of a sum of 8-bit integers, in f32. Pure functions; thread-safe.
#ifndef ENGINE_PRIMITIVES_INTEGER_SUM_ARITHMETIC_H_
#define ENGINE_PRIMITIVES_INTEGER_SUM_ARITHMETIC_H_

#include <cmath>
#include <cstdint>

#include "engine/memory/data_type.h"

namespace tilewire::integer_sum {

// The real number that the integer stands for.
inline float RealOf(float integer, float scale, int32_t zero_point) {
  return (integer - static_cast<float>(zero_point)) * scale;
}

// The integer of `type` (kU8 or kS8) that is nearest, saturated; NaN maps to the lowest.
inline float IntegerOf(float real, float scale, int32_t zero_point, DataType type) {
  const float zero = static_cast<float>(zero_point);
  const float lowest = (type == DataType::kU8 ? 0.0f : -128.0f) - zero;
  const float highest = (type == DataType::kU8 ? 255.0f : 127.0f) - zero;
  float scaled = real / scale;
  scaled = scaled > lowest ? scaled : lowest;
  scaled = scaled < highest ? scaled : highest;
  return std::nearbyint(scaled) + zero;
}

}  // namespace tilewire::integer_sum

#endif  // ENGINE_PRIMITIVES_INTEGER_SUM_ARITHMETIC_H_
