// SPDX-License-Identifier: Apache-2.0
//
// The values of the functions of engine/functions/function.h for numbers of any type that
// elementwise.h takes. Pure functions; thread-safe.
#ifndef ENGINE_PRIMITIVES_ELEMENTWISE_NUMBER_FUNCTIONS_H_
#define ENGINE_PRIMITIVES_ELEMENTWISE_NUMBER_FUNCTIONS_H_

#include <cmath>
#include <type_traits>

#include "engine/functions/integer_functions.h"
#include "engine/primitives/elementwise/elementwise.h"

namespace tilewire::elementwise {

// The type of every source but a condition.
inline DataType NumberTypeOf(const ElementwiseDesc& desc) { return desc.srcs.back().data_type(); }

// The type of truth values: of the result of a predicate, or of a condition; kF32 without either.
inline DataType TruthTypeOf(const ElementwiseDesc& desc) {
  if (functions::IsPredicate(desc.function.function)) return desc.dst.data_type();
  const bool has_condition = desc.function.function == functions::Elementwise::Function::kWhere;
  return has_condition ? desc.srcs[0].data_type() : DataType::kF32;
}

// Truth values of either type.
inline bool TruthAt(DataType type, const void* truths, int64_t at) {
  return type == DataType::kU8 ? static_cast<const uint8_t*>(truths)[at] != 0
                               : static_cast<const float*>(truths)[at] != 0;
}
inline void SetTruthAt(DataType type, void* truths, int64_t at, bool truth) {
  if (type == DataType::kU8) {
    static_cast<uint8_t*>(truths)[at] = truth;
  } else {
    static_cast<float*>(truths)[at] = truth;
  }
}

template <typename T>
T EvaluateNumbers(const functions::Elementwise& function, const T* x) {
  if constexpr (std::is_integral_v<T>) {
    return functions::EvaluateIntegers(function, x);
  } else {
    return functions::Evaluate(function, x);
  }
}

// std::fmod(x, y). Where the quotient has few bits, neither it nor the difference is rounded in
// double to another number than the exact one's whole part, and so the remainder is exact.
// An infinite y is left to std::fmod: the product would be NaN.
inline double RemainderOf(double x, double y) { return std::fmod(x, y); }
inline float RemainderOf(float x, float y) {
  const double quotient = static_cast<double>(x) / static_cast<double>(y);
  if (!(std::abs(quotient) < 0x1p28) || std::isinf(y)) return std::fmod(x, y);
  const auto whole = static_cast<double>(static_cast<int32_t>(quotient));
  return std::copysign(static_cast<float>(x - whole * y), x);
}

// EvaluateNumbers() of kAdd, kSub, kMul, kDiv, kMod or kFloorMod.
template <functions::Elementwise::Function kFunction, typename T>
T FunctionOfTwo(T x, T y) {
  using Function = functions::Elementwise::Function;
  if constexpr (std::is_integral_v<T>) {
    return functions::IntegerOf<kFunction>(x, y);
  } else if constexpr (kFunction == Function::kAdd) {
    return x + y;
  } else if constexpr (kFunction == Function::kSub) {
    return x - y;
  } else if constexpr (kFunction == Function::kMul) {
    return x * y;
  } else if constexpr (kFunction == Function::kDiv) {
    return x / y;
  } else {
    const T rest = RemainderOf(x, y);
    const bool moves = kFunction == Function::kFloorMod && rest != 0 && (rest < 0) != (y < 0);
    return moves ? rest + y : rest;
  }
}

}  // namespace tilewire::elementwise

#endif  // ENGINE_PRIMITIVES_ELEMENTWISE_NUMBER_FUNCTIONS_H_
