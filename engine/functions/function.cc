// SPDX-License-Identifier: Apache-2.0
#include "engine/functions/function.h"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"

namespace tilewire::functions {
namespace {

double Wide(double x) { return x; }

// NaN stays NaN in both: a comparison with NaN is false.
template <typename T>
T AtLeast(T x, std::type_identity_t<T> low) {
  return x < low ? low : x;
}
template <typename T>
T AtMost(T x, std::type_identity_t<T> high) {
  return x > high ? high : x;
}

template <typename T>
T SignOf(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

double LogisticOf(double x) { return 1 / (1 + std::exp(-x)); }

double GeluByTanh(double x) {
  // x/2 (1 + tanh(u)) = x logistic(2u), which keeps its digits where tanh(u) is near -1.
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x * LogisticOf(2 * u);
}

// x tanh(log(1 + e^x)). (1 + e^x)^2 - 1 over the same + 1 is the tanh, without a difference for
// either sign of x.
double MishOf(double x) {
  const double u = std::exp(-std::fabs(x));
  if (x < 0) return x * (u * (u + 2) / (u * (u + 2) + 2));
  return x * ((1 + 2 * u) / (1 + 2 * u + 2 * u * u));
}

// Denormal numbers of f32 count as 0.
float Flushed(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}
double Flushed(double x) { return x; }

// alpha x^beta, NaN for x < 0 unless beta is integral. With beta 0.5 it is alpha sqrt(x), NaN also
// for -infinity, where pow() of C is infinite.
template <typename T>
T PowerOf(T x, T alpha, T beta) {
  if (beta == T{0.5}) return alpha * std::sqrt(x + T{0});
  return static_cast<T>(alpha * std::pow(Wide(Flushed(x)), Wide(beta)));
}

template <typename T>
T FloorRemainder(T x, T y) {
  const T rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// The largest power of two up to x; 0 of denormal x, infinity of NaN.
float PowerBelow(float x) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(x) & 0x7F80'0000u);
}
double PowerBelow(double x) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(x) & 0x7FF0'0000'0000'0000u);
}

// A sum with a large number has no digits but those that are to stay: f32 adds 24 bits, f64 53.
template <typename T>
T RoundedBits(T x, T alpha, T beta) {
  constexpr T kMoreBits = std::is_same_v<T, double> ? T{0x1p29} : T{1};
  const T size = AtMost(std::abs(x), T{0x1p100});
  const T large = AtLeast(PowerBelow(size), beta) * alpha * kMoreBits;
  return std::copysign((size + large) - large, x);
}

double WithoutReals() {
  TILEWIRE_CHECK(false, "a function of bits is asked for its value for real numbers");
  return 0;
}

template <typename T>
T ValueOf(const Elementwise& e, T x, T y, T z) {
  const T alpha = e.alpha, beta = e.beta;
  switch (e.function) {
#define REALS(...) __VA_ARGS__
#define NONE(why) WithoutReals()
#define TILEWIRE_FUNCTION(name, text, sources, gives, reals, integers, code, slope) \
  case Function::k##name:                                                           \
    return static_cast<T>(reals);
#include "engine/functions/functions.inc"
  }
  return x;
}

bool IsInside(double x, double low, double high) { return x > low && x < high; }

double GeluByTanhSlope(double x) {
  const double root = std::sqrt(2 / M_PI);
  const double s = LogisticOf(2 * root * (x + 0.044715 * x * x * x));
  return s + 2 * root * x * (1 + 3 * 0.044715 * x * x) * s * (1 - s);
}

double SwishSlope(double x, double alpha) {
  const double s = LogisticOf(alpha * x);
  return s + alpha * x * s * (1 - s);
}

double HardSwishSlope(double x, double alpha, double beta) {
  const double line = alpha * x + beta;
  if (IsInside(line, 0, 1)) return 2 * alpha * x + beta;
  return line >= 1 ? 1 : 0;
}

double MishSlope(double x) {
  const double tanh = x == 0 ? 0.6 : MishOf(x) / x;  // of log(1 + e^x)
  return tanh + x * (1 - tanh) * (1 + tanh) * LogisticOf(x);
}

// 0 where nothing depends on x, also where its power is infinite.
double PowerSlope(double x, double alpha, double beta) {
  return alpha * beta == 0 ? 0 : alpha * beta * std::pow(x, beta - 1);
}

double WithoutSlope() {
  TILEWIRE_CHECK(false, "a function without a derivative is asked for it");
  return 0;
}

double SlopeOf(const EltwiseOp& op, double x, [[maybe_unused]] double y) {
  const double alpha = op.alpha, beta = op.beta;
  switch (op.function) {
#define SLOPE(...) static_cast<double>(__VA_ARGS__)
#define RESULT_SLOPE(...) static_cast<double>(__VA_ARGS__)
#define NONE(why) WithoutSlope()
#define TILEWIRE_FUNCTION(name, text, sources, gives, reals, integers, code, slope) \
  case Function::k##name:                                                           \
    return slope;
#include "engine/functions/functions.inc"
  }
  return x;
}

template <typename T>
T EvaluateAs(const Elementwise& elementwise, const T* x) {
  const int sources = ArityOf(elementwise.function);
  return ValueOf(elementwise, x[0], sources > 1 ? x[1] : T{0}, sources > 2 ? x[2] : T{0});
}

}  // namespace

float Evaluate(const Elementwise& elementwise, const float* x) {
  return EvaluateAs(elementwise, x);
}

double Evaluate(const Elementwise& elementwise, const double* x) {
  return EvaluateAs(elementwise, x);
}

double EltwiseDerivative(const EltwiseOp& op, double x) { return SlopeOf(op, x, Evaluate(op, &x)); }

double EltwiseDerivativeOfResult(const EltwiseOp& op, double y) { return SlopeOf(op, y, y); }

bool HasResultSlope(const EltwiseOp& op) {
  const bool bends = op.function == Function::kRelu || op.function == Function::kElu;
  return RowOf(op.function).has_result_slope && !(bends && op.alpha < 0);
}

absl::Status CheckHasCode(absl::string_view use, Function function) {
  if (!IsOfOneReal(function)) {
    return InvalidArgument(use, ": function ", static_cast<int>(function),
                           " is not one of one real number");
  }
  if (HasCode(function)) return absl::OkStatus();
  return InvalidArgument(use, ": ", AlgorithmName(function),
                         " has no generated code: ", RowOf(function).no_code);
}

bool PreservesZero(const EltwiseOp& op) {
  return std::bit_cast<uint32_t>(EltwiseScalar(op, 0)) == 0;
}

}  // namespace tilewire::functions
