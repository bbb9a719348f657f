// SPDX-License-Identifier: Apache-2.0
//
// What the functions of engine/functions/elementwise.h give for integers: sums, differences, products and
// powers modulo 2^bits; quotients cut towards zero, and 0 where the divisor is 0. Pure functions;
// thread-safe. Source: ONNX.
#ifndef ENGINE_FUNCTIONS_INTEGER_FUNCTIONS_H_
#define ENGINE_FUNCTIONS_INTEGER_FUNCTIONS_H_

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "engine/functions/elementwise.h"

namespace tilewire::functions {

// Integers that wrap around without being promoted to a signed type.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;

// A negative power of anything but 1 and -1 is cut to 0.
template <typename T>
T PowerOf(T base, T exponent) {
  if (exponent < 0) {
    const bool odd = (exponent & 1) != 0;
    return static_cast<T>(base == 1 ? 1 : base == static_cast<T>(-1) ? (odd ? -1 : 1) : 0);
  }
  Wrapping<T> result = 1, square = static_cast<Wrapping<T>>(base);
  for (auto rest = static_cast<std::make_unsigned_t<T>>(exponent); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// A quotient by 0, and its remainder, is 0; that of the lowest integer by -1 wraps around.
template <typename T>
T DivisionOf(Elementwise::Function function, T x, T y) {
  using Function = Elementwise::Function;
  if (y == 0) return 0;
  if (std::is_signed_v<T> && y == static_cast<T>(-1))
    return function == Function::kDiv ? static_cast<T>(-static_cast<Wrapping<T>>(x)) : T{0};
  if (function == Function::kDiv) return static_cast<T>(x / y);
  const T rest = static_cast<T>(x % y);
  const bool moves = function == Function::kFloorMod && rest != 0 && (rest < 0) != (y < 0);
  return static_cast<T>(moves ? rest + y : rest);
}

template <typename T>
T ShiftOf(Elementwise::Function function, T x, T by) {
  using Function = Elementwise::Function;
  if (by < 0 || static_cast<uint64_t>(by) >= sizeof(T) * 8) return 0;
  const auto bits = static_cast<std::make_unsigned_t<T>>(x);
  return static_cast<T>(function == Function::kShiftLeft ? static_cast<Wrapping<T>>(bits) << by
                                                         : static_cast<Wrapping<T>>(bits) >> by);
}

template <typename T>
T OfTwoIntegers(Elementwise::Function function, T x, T y) {
  using Function = Elementwise::Function;
  const auto a = static_cast<Wrapping<T>>(x), b = static_cast<Wrapping<T>>(y);
  switch (function) {
    case Function::kAdd:
      return static_cast<T>(a + b);
    case Function::kSub:
      return static_cast<T>(a - b);
    case Function::kMul:
      return static_cast<T>(a * b);
    case Function::kPRelu:
      return x < 0 ? static_cast<T>(a * b) : x;
    case Function::kMax:
      return std::max(x, y);
    case Function::kMin:
      return std::min(x, y);
    case Function::kPow:
      return PowerOf(x, y);
    case Function::kBitAnd:
      return static_cast<T>(x & y);
    case Function::kBitOr:
      return static_cast<T>(x | y);
    case Function::kBitXor:
      return static_cast<T>(x ^ y);
    case Function::kShiftLeft:
    case Function::kShiftRight:
      return ShiftOf(function, x, y);
    case Function::kDiv:
    case Function::kMod:
    case Function::kFloorMod:
      return DivisionOf(function, x, y);
    default:
      return Holds(function, x, y);
  }
}

template <typename T>
T OfOneInteger(Elementwise::Function function, T x) {
  using Function = Elementwise::Function;
  const auto negated = static_cast<T>(-static_cast<Wrapping<T>>(x));
  switch (function) {
    case Function::kSign:
      return static_cast<T>((x > 0) - (x < 0));
    case Function::kNot:
      return x == 0;
    case Function::kAbs:
      return x < 0 ? negated : x;
    case Function::kNegate:
      return negated;
    case Function::kBitNot:
      return static_cast<T>(~x);
    default:
      return x;  // what rounds
  }
}

// `x` holds as many integers as the function takes, of which functions::TakesIntegers() is true.
template <typename T>
T EvaluateIntegers(const Elementwise& elementwise, const T* x) {
  using Function = Elementwise::Function;
  if (elementwise.function == Function::kWhere) return x[0] != 0 ? x[1] : x[2];
  return elementwise.function < Function::kWhere ? OfTwoIntegers(elementwise.function, x[0], x[1])
                                                 : OfOneInteger(elementwise.function, x[0]);
}

}  // namespace tilewire::functions

#endif  // ENGINE_FUNCTIONS_INTEGER_FUNCTIONS_H_
