// SPDX-License-Identifier: Apache-2.0
#include "engine/functions/eltwise.h"

#include <bit>
#include <cmath>
#include <limits>

namespace tilewire::functions {
namespace {

// NaN stays NaN in both: a comparison with NaN is false.
float AtLeast(float x, float low) { return x < low ? low : x; }
float AtMost(float x, float high) { return x > high ? high : x; }

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

double Gelu(double x) {
  // x/2 (1 + tanh(u)) = x logistic(2u), which keeps its digits where tanh(u) is near -1.
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x * Logistic(2 * u);
}

// (1 + e^x)^2 - 1 over the same + 1 is tanh(log(1 + e^x)), without a difference for either sign of
// x.
double Mish(double x) {
  const double u = std::exp(-std::fabs(x));
  if (x < 0) return x * (u * (u + 2) / (u * (u + 2) + 2));
  return x * ((1 + 2 * u) / (1 + 2 * u + 2 * u * u));
}

// Denormal numbers count as 0.
float Flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

float Pow(const EltwiseOp& op, float x) {
  if (op.beta == 0.5f) return op.alpha * std::sqrt(x + 0.0f);
  x = Flushed(x);
  return op.alpha * std::pow(static_cast<double>(x), static_cast<double>(op.beta));
}

}  // namespace

absl::string_view EltwiseAlgorithmName(EltwiseAlgorithm algorithm) {
  static constexpr absl::string_view kNames[kEltwiseAlgorithmCount] = {
      "relu",      "tanh",     "elu", "square", "abs",   "sqrt",         "linear", "bounded_relu",
      "soft_relu", "logistic", "exp", "gelu",   "clip",  "hard_sigmoid", "swish",  "hard_swish",
      "gelu_erf",  "mish",     "log", "pow",    "round", "floor",        "ceil"};
  return kNames[static_cast<int>(algorithm)];
}

float EltwiseScalar(const EltwiseOp& op, float x) {
  using Algorithm = EltwiseAlgorithm;
  const float alpha = op.alpha, beta = op.beta;
  switch (op.algorithm) {
    case Algorithm::kRelu:
      // With alpha 0 nothing is multiplied: 0 x would be NaN for an infinite x.
      return alpha == 0 ? AtLeast(x, 0) : x > 0 ? x : alpha * x;
    case Algorithm::kTanh:
      return std::tanh(static_cast<double>(x));
    case Algorithm::kElu:
      return x > 0 ? x : alpha * std::expm1(static_cast<double>(x));
    case Algorithm::kSquare:
      return x * x;
    case Algorithm::kAbs:
      return std::fabs(x);
    case Algorithm::kSqrt:
      return std::sqrt(AtLeast(x, 0));
    case Algorithm::kLinear:
      return std::fma(alpha, x, beta);
    case Algorithm::kBoundedRelu:
      return AtMost(AtLeast(x, 0), alpha);
    case Algorithm::kSoftRelu:
      return AtLeast(x, 0) + std::log1p(std::exp(-std::fabs(static_cast<double>(x))));
    case Algorithm::kLogistic:
      return Logistic(x);
    case Algorithm::kExp:
      return std::exp(static_cast<double>(x));
    case Algorithm::kGelu:
      return Gelu(x);
    case Algorithm::kClip:
      return AtMost(AtLeast(x, alpha), beta);
    case Algorithm::kHardSigmoid:
      return AtMost(AtLeast(std::fma(alpha, x, beta), 0), 1);
    case Algorithm::kSwish:
      return x * Logistic(static_cast<double>(alpha) * x);
    case Algorithm::kHardSwish:
      return x * AtMost(AtLeast(std::fma(alpha, x, beta), 0), 1);
    case Algorithm::kGeluErf:
      return x * 0.5 * std::erfc(-x * M_SQRT1_2);
    case Algorithm::kMish:
      return Mish(x);
    case Algorithm::kLog:
      return std::log(static_cast<double>(Flushed(x)));
    case Algorithm::kPow:
      return Pow(op, x);
    case Algorithm::kRound:
      return std::nearbyint(x);
    case Algorithm::kFloor:
      return std::floor(x);
    case Algorithm::kCeil:
      return std::ceil(x);
  }
  return x;
}

bool PreservesZero(const EltwiseOp& op) {
  return std::bit_cast<uint32_t>(EltwiseScalar(op, 0)) == 0;
}

}  // namespace tilewire::functions
