// SPDX-License-Identifier: Apache-2.0
//
// The elementwise functions of primitives and post-ops. Formulas, for f32 x:
//
//   relu          x > 0 ? x : alpha x          tanh         tanh(x)
//   elu           x > 0 ? x : alpha (e^x - 1)  square       x^2
//   abs           |x|                          sqrt         x > 0 ? sqrt(x) : 0
//   linear        alpha x + beta               bounded_relu min(max(x, 0), alpha)
//   soft_relu     log(1 + e^x)                 logistic     1 / (1 + e^-x)
//   exp           e^x                          log          log(x), denormal x counts as 0
//   gelu          x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
//   gelu_erf      x/2 (1 + erf(x / sqrt(2)))   mish         x tanh(log(1 + e^x))
//   clip          min(max(x, alpha), beta)     hard_sigmoid min(max(alpha x + beta, 0), 1)
//   swish         x logistic(alpha x)          hard_swish   x min(max(alpha x + beta, 0), 1)
//   pow           alpha x^beta, NaN for x < 0 unless beta is integral; denormal x counts as 0.
//                 With beta 0.5 it is alpha sqrt(x), NaN also for -infinity, where pow() of C is
//                 infinite
//   round         to the nearest integer, halves to the even one; floor, ceil
//
// NaN gives NaN, except from pow with beta 0. Pure functions; thread-safe.
//
// Source: MKL-DNN 1.0.4 for the twelve from relu to gelu (tests/engine/rows.txt A15); ONNX and
// current models for the others.
#ifndef ENGINE_FUNCTIONS_ELTWISE_H_
#define ENGINE_FUNCTIONS_ELTWISE_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tilewire::functions {

enum class EltwiseAlgorithm : uint8_t {
  kRelu,
  kTanh,
  kElu,
  kSquare,
  kAbs,
  kSqrt,
  kLinear,
  kBoundedRelu,
  kSoftRelu,
  kLogistic,
  kExp,
  kGelu,
  kClip,
  kHardSigmoid,
  kSwish,
  kHardSwish,
  kGeluErf,
  kMish,
  kLog,
  kPow,
  kRound,
  kFloor,
  kCeil,
};
constexpr int kEltwiseAlgorithmCount = 23;

absl::string_view EltwiseAlgorithmName(EltwiseAlgorithm algorithm);  // "bounded_relu"

struct EltwiseOp {
  EltwiseAlgorithm algorithm = EltwiseAlgorithm::kRelu;
  float alpha = 0;
  float beta = 0;
  bool operator==(const EltwiseOp&) const = default;
};

// The reference: the formula above. Linear parts are computed in float with one rounding (fma), the
// exponential ones in double.
float EltwiseScalar(const EltwiseOp& op, float x);

// Whether f(0) is 0 and not -0, so that every byte of a tail padded with zeros stays zero.
bool PreservesZero(const EltwiseOp& op);

}  // namespace tilewire::functions

#endif  // ENGINE_FUNCTIONS_ELTWISE_H_
