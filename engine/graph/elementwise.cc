// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/elementwise.h"

#include <algorithm>
#include <cmath>

#include "engine/base/checked_math.h"

namespace tilewire::graph {
namespace {

using Function = Elementwise::Function;

float FloorMod(float x, float y) {
  const float rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

float OfTwo(Function function, float x, float y) {
  switch (function) {
    case Function::kAdd:
      return x + y;
    case Function::kSub:
      return x - y;
    case Function::kMul:
      return x * y;
    case Function::kDiv:
      return x / y;
    case Function::kMax:
      return std::isnan(x) || x > y ? x : y;
    case Function::kMin:
      return std::isnan(x) || x < y ? x : y;
    case Function::kPow:
      return std::pow(x, y);
    case Function::kMod:
      return std::fmod(x, y);
    case Function::kFloorMod:
      return FloorMod(x, y);
    case Function::kPRelu:
      return x < 0 ? x * y : x;
    case Function::kEqual:
      return x == y;
    case Function::kLess:
      return x < y;
    case Function::kLessOrEqual:
      return x <= y;
    case Function::kAnd:
      return x != 0 && y != 0;
    case Function::kOr:
      return x != 0 || y != 0;
    default:
      return (x != 0) != (y != 0);  // kXor
  }
}

float Trigonometric(Function function, float x) {
  switch (function) {
    case Function::kSin:
      return std::sin(x);
    case Function::kCos:
      return std::cos(x);
    case Function::kTan:
      return std::tan(x);
    case Function::kSinh:
      return std::sinh(x);
    case Function::kCosh:
      return std::cosh(x);
    case Function::kAsin:
      return std::asin(x);
    case Function::kAcos:
      return std::acos(x);
    case Function::kAtan:
      return std::atan(x);
    case Function::kAsinh:
      return std::asinh(x);
    case Function::kAcosh:
      return std::acosh(x);
    default:
      return std::atanh(x);
  }
}

float ActivationFunction(const Elementwise& e, float x) {
  switch (e.function) {
    case Function::kGelu:
      return 0.5f * x * (1 + std::erf(x * 0.70710678f));
    case Function::kSelu:
      return x > 0 ? e.beta * x : e.beta * e.alpha * std::expm1(x);
    case Function::kCelu:
      return std::max(0.0f, x) + std::min(0.0f, e.alpha * std::expm1(x / e.alpha));
    case Function::kThresholdedRelu:
      return x > e.alpha ? x : 0;
    case Function::kTruncate:
      return std::trunc(x);
    case Function::kShrink:
      return x < -e.alpha ? x + e.beta : x > e.alpha ? x - e.beta : 0;
    default:
      return x / (1 + std::abs(x));  // kSoftsign
  }
}

float OfOne(const Elementwise& e, float x) {
  switch (e.function) {
    case Function::kLog:
      return std::log(x);
    case Function::kReciprocal:
      return 1 / x;
    case Function::kFloor:
      return std::floor(x);
    case Function::kCeil:
      return std::ceil(x);
    case Function::kRound:
      return std::nearbyint(x);
    case Function::kSign:
      return static_cast<float>((x > 0) - (x < 0));
    case Function::kErf:
      return std::erf(x);
    case Function::kNot:
      return x == 0;
    case Function::kIsNan:
      return std::isnan(x);
    case Function::kIsInf:
      return std::isinf(x);
    default:
      return e.function >= Function::kSin && e.function <= Function::kAtanh
                 ? Trigonometric(e.function, x)
                 : ActivationFunction(e, x);
  }
}

std::optional<int64_t> PowInts(int64_t base, int64_t exponent) {
  if (exponent < 0 || exponent > 64) return std::nullopt;
  std::optional<int64_t> result = 1;
  for (int64_t i = 0; i < exponent && result; ++i) result = CheckedMul(*result, base);
  return result;
}

// The quotient is cut towards zero; the remainder of kFloorMod has the sign of the divisor.
std::optional<int64_t> DivideInts(Function function, int64_t x, int64_t y) {
  if (y == 0 || (x == INT64_MIN && y == -1)) return std::nullopt;
  if (function == Function::kDiv) return x / y;
  const int64_t rest = x % y;
  const bool moves = function == Function::kFloorMod && rest != 0 && (rest < 0) != (y < 0);
  return moves ? rest + y : rest;
}

}  // namespace

int ArityOf(Function function) {
  if (function == Function::kWhere) return 3;
  return function < Function::kWhere ? 2 : 1;
}

float Evaluate(const Elementwise& elementwise, const float* x) {
  if (elementwise.function == Function::kWhere) return x[0] != 0 ? x[1] : x[2];
  if (elementwise.function < Function::kWhere) return OfTwo(elementwise.function, x[0], x[1]);
  return OfOne(elementwise, x[0]);
}

std::optional<int64_t> EvaluateInts(Function function, const int64_t* x) {
  int64_t difference;
  switch (function) {
    case Function::kAdd:
      return CheckedAdd(x[0], x[1]);
    case Function::kSub:
      if (__builtin_sub_overflow(x[0], x[1], &difference)) return std::nullopt;
      return difference;
    case Function::kMul:
      return CheckedMul(x[0], x[1]);
    case Function::kDiv:
    case Function::kMod:
    case Function::kFloorMod:
      return DivideInts(function, x[0], x[1]);
    case Function::kPow:
      return PowInts(x[0], x[1]);
    case Function::kMax:
      return std::max(x[0], x[1]);
    case Function::kMin:
      return std::min(x[0], x[1]);
    case Function::kEqual:
      return x[0] == x[1];
    case Function::kLess:
      return x[0] < x[1];
    case Function::kLessOrEqual:
      return x[0] <= x[1];
    case Function::kAnd:
      return x[0] != 0 && x[1] != 0;
    case Function::kOr:
      return x[0] != 0 || x[1] != 0;
    case Function::kXor:
      return (x[0] != 0) != (x[1] != 0);
    case Function::kWhere:
      return x[0] != 0 ? x[1] : x[2];
    case Function::kNot:
      return x[0] == 0;
    case Function::kSign:
      return (x[0] > 0) - (x[0] < 0);
    case Function::kFloor:
    case Function::kCeil:
    case Function::kRound:
      return x[0];
    default:
      return std::nullopt;
  }
}

std::optional<Dims> Broadcast(const Dims& a, const Dims& b) {
  const size_t rank = std::max(a.size(), b.size());
  Dims dst(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t from_a = i + a.size() >= rank ? a[i + a.size() - rank] : 1;
    const int64_t from_b = i + b.size() >= rank ? b[i + b.size() - rank] : 1;
    if (from_a != from_b && from_a != 1 && from_b != 1) return std::nullopt;
    dst[i] = from_a == 1 ? from_b : from_a;
  }
  return dst;
}

}  // namespace tilewire::graph
