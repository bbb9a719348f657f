// SPDX-License-Identifier: Apache-2.0
//
// The values of functions for integers (INTEGERS in functions.inc): sums, differences, products and
// powers modulo 2^bits; quotients cut towards zero, and 0 where the divisor is 0. Pure functions;
// thread-safe. Source: ONNX.
#ifndef ENGINE_FUNCTIONS_INTEGER_FUNCTIONS_H_
#define ENGINE_FUNCTIONS_INTEGER_FUNCTIONS_H_

#include <cstdint>
#include <type_traits>

#include "engine/base/check.h"
#include "engine/functions/function.h"

namespace tilewire::functions {

// Integers that wrap around without being promoted to a signed type.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, uint32_t, std::make_unsigned_t<T>>;
template <typename T>
Wrapping<T> Wrap(T x) {
  return static_cast<Wrapping<T>>(x);
}
template <typename T>
std::make_unsigned_t<T> BitsOf(T x) {
  return static_cast<std::make_unsigned_t<T>>(x);
}

// A negative power of anything but 1 and -1 is cut to 0.
template <typename T>
T IntegerPower(T base, T exponent) {
  if (exponent < 0) {
    const bool odd = (exponent & 1) != 0;
    return static_cast<T>(base == 1 ? 1 : base == static_cast<T>(-1) ? (odd ? -1 : 1) : 0);
  }
  Wrapping<T> result = 1, square = Wrap(base);
  for (auto rest = BitsOf(exponent); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result *= square;
    square *= square;
  }
  return static_cast<T>(result);
}

// A quotient by 0, and its remainder, is 0; that of the lowest integer by -1 wraps around.
template <typename T>
T QuotientOf(T x, T y) {
  if (y == 0) return 0;
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return static_cast<T>(-Wrap(x));
  return static_cast<T>(x / y);
}
template <typename T>
T RemainderOf(T x, T y) {
  if (y == 0 || (std::is_signed_v<T> && y == static_cast<T>(-1))) return 0;
  return static_cast<T>(x % y);
}
template <typename T>
T FloorRemainderOf(T x, T y) {
  const T rest = RemainderOf(x, y);
  return static_cast<T>(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
}

// Whether a shift by so many bits leaves any.
template <typename T>
bool Shifts(T by) {
  return by >= 0 && static_cast<uint64_t>(by) < sizeof(T) * 8;
}

template <typename T>
T WithoutIntegers() {
  TILEWIRE_CHECK(false, "a function of real numbers is asked for its value for integers");
  return 0;
}

// The value of a function that TakesIntegers(); y and z matter where it has as many sources.
template <typename T>
T OfIntegers(Function function, T x, T y, T z) {
  switch (function) {
#define INTEGERS(...) __VA_ARGS__
#define NONE(why) WithoutIntegers<T>()
#define TILEWIRE_FUNCTION(name, text, sources, gives, reals, integers, code, slope) \
  case Function::k##name:                                                           \
    return static_cast<T>(integers);
#include "engine/functions/functions.inc"
  }
  return x;
}

// The same of a function that is known when this is compiled.
template <Function kFunction, typename T>
T IntegerOf(T x, [[maybe_unused]] T y, [[maybe_unused]] T z = 0) {
#define INTEGERS(...) __VA_ARGS__
#define NONE(why) WithoutIntegers<T>()
#define TILEWIRE_FUNCTION(name, text, sources, gives, reals, integers, code, slope) \
  if constexpr (kFunction == Function::k##name) return static_cast<T>(integers);
#include "engine/functions/functions.inc"
  return x;
}

// `x` holds ArityOf() integers.
template <typename T>
T EvaluateIntegers(const Elementwise& elementwise, const T* x) {
  const int sources = ArityOf(elementwise.function);
  return OfIntegers(elementwise.function, x[0], sources > 1 ? x[1] : T{0},
                    sources > 2 ? x[2] : T{0});
}

}  // namespace tilewire::functions

#endif  // ENGINE_FUNCTIONS_INTEGER_FUNCTIONS_H_
