// SPDX-License-Identifier: Apache-2.0
//
// Cases of functions of one real number (engine/functions/functions.inc), for the tests of their
// formulas, of their code and of the primitives that compute them. Every function has one.
#ifndef TESTS_SUPPORT_FUNCTION_CASES_H_
#define TESTS_SUPPORT_FUNCTION_CASES_H_

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/functions/function.h"

namespace tilewire::testing {

struct FunctionCase {
  const char* why;
  functions::EltwiseOp op;
  // Its value in the mathematics of double; a and b are alpha and beta. Written here once more,
  // where that is possible by other means than the formula's.
  double (*value)(double x, double a, double b);
  // Units in the last place by which the formula in f32 may be off the value, and generated code
  // off the formula: roundings of each step, and the errors of what it is made of.
  double formula_ulps = 0.5, code_ulps = 0;
};

inline double ExactLogistic(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
inline double ExactSoftRelu(double x) { return x > 40 ? x : std::log1p(std::exp(x)); }
// NaN stays.
inline double ExactClamp(double x, double low, double high) {
  return std::isnan(x) ? x : x < low ? low : x > high ? high : x;
}
inline double ExactNormalShare(double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }
// To so many significant bits; below 2^exponent in the steps that there are above it.
inline double ExactBits(double x, int bits, int exponent) {
  if (std::isnan(x) || x == 0) return x;
  if (std::abs(x) > 0x1p100) x = std::copysign(0x1p100, x);
  const double step = std::ldexp(1, std::max(std::ilogb(x), exponent) - bits + 1);
  return std::copysign(std::nearbyint(x / step) * step, x);
}
inline double FlushedToZero(double x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0, x) : x;
}

using F = functions::Function;

// Half a unit where one step rounds, or double does before it; more where f32 rounds more than once
// or the C library's function of f32 is used.
inline const FunctionCase kFunctionCases[] = {
#define VALUE(...)                                                                                \
  []([[maybe_unused]] double x, [[maybe_unused]] double a, [[maybe_unused]] double b) -> double { \
    return __VA_ARGS__;                                                                           \
  }
#include "tests/support/function_cases.inc"
#undef VALUE
};

// Units in the last place of the result that generated code may be off the formula at x.
inline double AllowedUlps(const FunctionCase& one, float x) {
  const double size = std::fabs(x);
  switch (one.op.function) {
    // e^u is off by |u| units for each half unit that u = x (c + d x^2) is off: two constants, the
    // square, the sum and the product make 5. t = e^-|u| below the normal range is off by half its
    // own unit, times x.
    case F::kGelu: {
      const double u = 1.6 * size * (1 + 0.044715 * size * size);
      return one.code_ulps + 2.5 * std::fmin(u, 105) + (u > 85 ? size : 0);
    }
    // Below -13 e^(-x^2/2) is denormal and off by half its unit, times x.
    case F::kGeluErf:
      return one.code_ulps + (x < -13 ? size : 0);
    case F::kSwish: {  // the product with alpha rounds, and e^ multiplies that
      const double u = std::fabs(static_cast<double>(one.op.alpha) * x);
      return one.code_ulps + (one.op.alpha == 1 ? 0 : std::fmin(u, 105)) + (u > 85 ? size : 0);
    }
    case F::kMish:
      return one.code_ulps + (size > 85 ? size : 0);
    default:
      return one.code_ulps;
  }
}

// One unit in the last place at `value`, denormals included.
inline double Ulp(float value) {
  if (std::isinf(value)) value = std::numeric_limits<float>::max();
  return std::ldexp(1.0, value == 0 ? -149 : std::max(-149, std::ilogb(value) - 23));
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_FUNCTION_CASES_H_
