// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic on sizes that come from outside, which returns nullopt instead of overflowing. Pure.
#ifndef ENGINE_BASE_CHECKED_MATH_H_
#define ENGINE_BASE_CHECKED_MATH_H_

#include <cstdint>
#include <optional>

#include "absl/types/span.h"

namespace tilewire {

inline std::optional<int64_t> CheckedMul(int64_t a, int64_t b) {
  int64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

inline std::optional<int64_t> CheckedAdd(int64_t a, int64_t b) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// The product of all factors; 1 for none.
inline std::optional<int64_t> CheckedProduct(absl::Span<const int64_t> factors) {
  std::optional<int64_t> product = 1;
  for (int64_t factor : factors) {
    product = CheckedMul(*product, factor);
    if (!product) return std::nullopt;
  }
  return product;
}

constexpr int64_t DivUp(int64_t a, int64_t b) { return (a + b - 1) / b; }
constexpr int64_t RoundUp(int64_t a, int64_t b) { return DivUp(a, b) * b; }

}  // namespace tilewire

#endif  // ENGINE_BASE_CHECKED_MATH_H_
