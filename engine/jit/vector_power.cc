// SPDX-License-Identifier: Apache-2.0
//
// Logarithm and power:
//
//   log x   x = 2^e m with m in [sqrt(1/2), sqrt(2)) and f = m - 1:
//           log x = e ln 2 + f - f^2/2 + f^3 P(f), where P's share of the error is 2e-10. It is
//           the sum of two floats, because a power multiplies the logarithm's error by its
//           exponent.
//   x^y     e^(y log|x|), where the low part of the product is added to the reduced argument of e;
//           the sign or the NaN of a negative x comes last. 0 and infinity have the logarithms
//           -2^33 and 2^33.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/jit/vector_math.h"

namespace tilewire::jit {
namespace {

constexpr uint32_t kRootOfHalf = 0x3F3504F3;  // the bits of sqrt(1/2)
constexpr uint32_t kSmallestNormal = 0x00800000;
constexpr float kBeyondLogs = 0x1p33f;

}  // namespace

void VectorMath::LogParts(const Vector& v, const Vector& low, const Vector& s0, const Vector& s1,
                          const Vector& s2) {
  const Vector &exponent = s0, &sum = s1, &tail = s2;
  generator_->vpsubd(exponent, v, ConstantBits(kRootOfHalf));
  generator_->vpsrad(exponent, exponent, 23);
  generator_->vpslld(sum, exponent, 23);
  generator_->vpsubd(v, v, sum);
  generator_->vcvtdq2ps(exponent, exponent);
  generator_->vsubps(v, v, Constant(1));  // f, exact
  generator_->vmulps(sum, v, v);
  Polynomial(tail, v,
             {-5.96197695e-2f, 1.07109383e-1f, -1.08788222e-1f, 1.10278465e-1f, -1.24132283e-1f,
              1.42849356e-1f, -1.66701019e-1f, 2.00001255e-1f, -2.49999523e-1f, 3.33333313e-1f});
  generator_->vmulps(tail, tail, sum);
  generator_->vmulps(tail, tail, v);
  generator_->vmovaps(low, v);
  generator_->vfmsub213ps(low, v, sum);  // what the square was rounded by
  generator_->vfnmadd231ps(tail, low, Constant(0.5f));
  generator_->vmulps(sum, sum, Constant(0.5f));
  generator_->vsubps(low, v, sum);  // f - f^2/2, and what it was rounded by
  generator_->vsubps(v, v, low);
  generator_->vsubps(v, v, sum);
  generator_->vaddps(tail, tail, v);
  generator_->vmulps(v, exponent, Constant(kLn2High));  // exact
  generator_->vaddps(sum, v, low);
  generator_->vsubps(v, sum, v);
  generator_->vsubps(low, low, v);
  generator_->vaddps(low, low, tail);
  generator_->vfmadd231ps(low, exponent, Constant(kLn2Low));
  generator_->vaddps(v, sum, low);
  generator_->vsubps(sum, v, sum);
  generator_->vsubps(low, low, sum);
}

void VectorMath::Log(const Vector& v, const Scratch5& s) {
  const Vector& x = s[4];
  generator_->vmovaps(x, v);
  LogParts(v, s[0], s[1], s[2], s[3]);
  generator_->vaddps(v, v, s[0]);
  // For infinity and NaN, the amount by which x exceeds the largest number is added.
  generator_->vsubps(s[0], x, Constant(std::numeric_limits<float>::max()));
  AtLeast(s[0], 0, s[1]);
  generator_->vaddps(v, v, s[0]);
  // Negative numbers, then both zeros and the denormal numbers.
  Load(s[0], std::numeric_limits<float>::quiet_NaN());
  TakeWhereNegative(v, x, s[0]);
  Abs(x);
  generator_->vpsubd(x, x, ConstantBits(kSmallestNormal));
  Load(s[0], -std::numeric_limits<float>::infinity());
  TakeWhereNegative(v, x, s[0]);
}

void VectorMath::Pow(const Vector& v, float y, const Scratch5& s) {
  // Products of logarithms stay finite; a larger y gives the same powers.
  y = std::clamp(y, -1e20f, 1e20f);
  const Vector& x = s[4];
  generator_->vmovaps(x, v);
  Abs(v);
  LogParts(v, s[0], s[1], s[2], s[3]);
  generator_->vmovaps(s[1], x);
  Abs(s[1]);
  generator_->vpsubd(s[2], s[1], ConstantBits(kSmallestNormal));
  Load(s[3], -kBeyondLogs);
  TakeWhereNegative(v, s[2], s[3]);
  Load(s[2], std::numeric_limits<float>::max());
  generator_->vpsubd(s[2], s[2], s[1]);  // below 0 for infinity and NaN
  Load(s[3], kBeyondLogs);
  TakeWhereNegative(v, s[2], s[3]);
  const Vector &exponent = s[3], &high = s[1];
  Load(exponent, y);
  generator_->vmulps(high, v, exponent);
  generator_->vfmsub213ps(v, exponent, high);
  generator_->vfmadd231ps(v, s[0], exponent);
  // Where the low part is large the power is 0 or infinite anyway.
  generator_->vmaxps(v, v, Constant(-1));
  generator_->vminps(v, v, Constant(1));
  ExpOfSum(high, v, s[0], s[2]);
  generator_->vmovaps(v, high);
  FinishPow(v, x, y, s[0], s[1]);
}

// |x|^y in v becomes negative for a negative x and an odd y, NaN for a negative number x where y is
// not an integer (but not for -infinity, as in C), and NaN where x is.
void VectorMath::FinishPow(const Vector& v, const Vector& x, float y, const Vector& s0,
                           const Vector& s1) {
  const bool integer = y == std::floor(y);
  if (integer && std::fmod(y, 2.0f) != 0) {
    generator_->vmovaps(s0, x);
    unit_.And(generator_, s0, s0, ConstantBits(0x80000000));
    unit_.Or(generator_, v, v, s0);
  } else if (!integer) {
    generator_->vaddps(x, x, Constant(0));  // -0 is not a negative number
    generator_->vmovaps(s1, x);
    AtMost(s1, std::numeric_limits<float>::max(), s0);
    // The bits of -infinity become 0, those of negative numbers stay negative.
    generator_->vpaddd(s1, s1, ConstantBits(kSmallestNormal));
    Load(s0, std::numeric_limits<float>::quiet_NaN());
    TakeWhereNegative(v, s1, s0);
  }
  AtLeast(x, 0, s0);
  AtMost(x, 0, s0);
  generator_->vaddps(v, v, x);
}

}  // namespace tilewire::jit
