// SPDX-License-Identifier: Apache-2.0
#include "engine/functions/elementwise.h"

#include <algorithm>
#include <cmath>

namespace tilewire::functions {
namespace {

using Function = Elementwise::Function;

template <typename T>
T FloorMod(T x, T y) {
  const T rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

template <typename T>
T OfTwo(Function function, T x, T y) {
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
    default:
      return Holds(function, x, y);
  }
}

template <typename T>
T Trigonometric(Function function, T x) {
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

template <typename T>
T ActivationFunction(const Elementwise& e, T x) {
  const T alpha = e.alpha, beta = e.beta;
  switch (e.function) {
    case Function::kGelu:
      return T{0.5} * x * (1 + std::erf(x * static_cast<T>(0.70710678118654752)));
    case Function::kSelu:
      return x > 0 ? beta * x : beta * alpha * std::expm1(x);
    case Function::kCelu:
      return std::max(x, T{0}) + std::min(alpha * std::expm1(x / alpha), T{0});  // NaN stays
    case Function::kThresholdedRelu:
      return x > alpha ? x : 0;
    case Function::kTruncate:
      return std::isnan(x) ? 0 : std::clamp(std::trunc(x), T{-0x1p63}, T{0x1p63});
    case Function::kShrink:
      return x < -alpha ? x + beta : x > alpha ? x - beta : 0;
    case Function::kAbs:
      return std::abs(x);
    case Function::kNegate:
      return -x;
    case Function::kExp:
      return std::exp(x);
    case Function::kSqrt:
      return std::sqrt(x);
    default:
      return x / (1 + std::abs(x));  // kSoftsign
  }
}

template <typename T>
T OfOne(const Elementwise& e, T x) {
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
      return std::isnan(x) ? x : static_cast<T>((x > 0) - (x < 0));
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

template <typename T>
T EvaluateAs(const Elementwise& elementwise, const T* x) {
  if (elementwise.function == Function::kWhere) return x[0] != 0 ? x[1] : x[2];
  if (elementwise.function < Function::kWhere) return OfTwo(elementwise.function, x[0], x[1]);
  return OfOne(elementwise, x[0]);
}

}  // namespace

int ArityOf(Function function) {
  if (function == Function::kWhere) return 3;
  return function < Function::kWhere ? 2 : 1;
}

bool IsPredicate(Function function) {
  return (function >= Function::kEqual && function <= Function::kXor) ||
         (function >= Function::kNot && function <= Function::kIsInf);
}

bool IsBitwise(Function function) {
  return (function >= Function::kBitAnd && function <= Function::kShiftRight) ||
         function == Function::kBitNot;
}

bool TakesIntegers(Function function) {
  if (function <= Function::kWhere) return true;
  switch (function) {
    case Function::kFloor:
    case Function::kCeil:
    case Function::kRound:
    case Function::kTruncate:
    case Function::kSign:
    case Function::kNot:
    case Function::kAbs:
    case Function::kNegate:
    case Function::kBitNot:
      return true;
    default:
      return false;
  }
}

float Evaluate(const Elementwise& elementwise, const float* x) {
  return EvaluateAs(elementwise, x);
}

double Evaluate(const Elementwise& elementwise, const double* x) {
  return EvaluateAs(elementwise, x);
}

}  // namespace tilewire::functions
