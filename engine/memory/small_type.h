// SPDX-License-Identifier: Apache-2.0
//
// Types of 2 to 8 bits that no tensor of the engine has: wider ones hold their numbers exactly,
// integers as u8 and s8, real numbers as f32. What their bits stand for, and the nearest number
// that they have. Pure functions; thread-safe.
//
// A real number is a sign, an exponent and a fraction, denormal where the exponent is 0. Sources:
// ONNX, "Float stored in 8 bits" and "4 bit types"; Micikevicius et al., "FP8 formats for deep
// learning", arXiv 2209.05433.
#ifndef ENGINE_MEMORY_SMALL_TYPE_H_
#define ENGINE_MEMORY_SMALL_TYPE_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/memory/data_type.h"

namespace tilewire {

enum class SmallType : uint8_t {
  kNone = 0,  // an ordinary type
  kU2,
  kS2,
  kU4,
  kS4,
  kF4E2M1,      // no infinity, no NaN
  kF8E4M3Fn,    // no infinity; NaN has all bits but the sign
  kF8E4M3Fnuz,  // no infinity, no -0, whose bits are NaN
  kF8E5M2,      // infinity and NaN as IEEE 754 has them
  kF8E5M2Fnuz,  // as kF8E4M3Fnuz
  kF8E8M0,      // powers of two, and NaN; no sign
};

// The type that holds its numbers: kU8, kS8 or kF32. Not of kNone, as all that follows.
DataType HolderOf(SmallType type);
int BitsOf(SmallType type);
// The bounds of integers.
float LeastOf(SmallType type);
float LargestOf(SmallType type);
// The number that the lowest bits stand for.
float SmallNumber(SmallType type, int bits);

// The parameters of a real number's rounding.
struct SmallFloat {
  int significant_bits;  // of numbers from `least_normal` on, the first one included
  float least_normal, largest;
  float beyond;  // instead of larger numbers, where they do not become the largest: NaN or infinity
  bool has_minus_zero;
};
// `type` is one for which IsSmallFloat().
SmallFloat SmallFloatOf(SmallType type);

// The nearest number that a type of SmallFloatOf() has, a tie to the even one: the largest for what
// is larger, or `beyond` where it does not saturate and the nearest would be larger than the
// largest. kF4E2M1 always saturates. NaN stays NaN, and is the largest number of kF4E2M1.
float NearestSmall(SmallType type, float number, bool saturates);
// The integer that the lowest bits of another one are, for a type of integers.
int64_t LowestBits(SmallType type, int64_t number);

inline bool IsSmallFloat(SmallType type) {
  return type >= SmallType::kF4E2M1 && type <= SmallType::kF8E5M2Fnuz;
}
inline bool IsSmallInteger(SmallType type) {
  return type >= SmallType::kU2 && type <= SmallType::kS4;
}

// "u2", "s2", "u4", "s4", "f4e2m1", "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0".
absl::string_view SmallTypeName(SmallType type);

}  // namespace tilewire

#endif  // ENGINE_MEMORY_SMALL_TYPE_H_
