// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/elementwise.h"

#include <algorithm>
#include <cmath>

namespace tilewire::jit {
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

}  // namespace tilewire::jit
