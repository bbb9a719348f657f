// SPDX-License-Identifier: Apache-2.0
//
// The functions and how they keep their accuracy over the whole range of f32:
//
//   exp       e^v = 2^n e^r with n = round(v / ln 2); r = v - n ln 2 with ln 2 as the sum of two
//             constants, the first short enough for n * constant to be exact (Cody & Waite); e^r by
//             a polynomial of degree 6 (error 3e-9). Denormal and infinite results come out right.
//   e^v - 1   2^n (e^r - 1) + (2^n - 1), so that nothing cancels near 0.
//   logistic  with t = e^-|v|: t / (1 + t) for v < 0, 1 / (1 + t) otherwise; t never overflows.
//   tanh      v + v^3 P(v^2) for |v| < 0.625, and 1 - 2 / (e^2|v| + 1) with v's sign above.
//   softplus  max(v, 0) + log1p(t); log1p(t) = 2 atanh(t / (2 + t)) by a polynomial (error 1e-10).
//   erf       x + x P(x^2) for |x| < 0.93 (error 2e-8), and 1 - e^(-t (1 + P(t))) with t = |x| and
//             x's sign above (error 3e-9; erf rounds to 1 from 4 on).
//   mish      see MishOf() in engine/functions/function.cc.
//
// Coefficients: minimax fits of the relative error, rounded to float.
#include "engine/jit/vector_math.h"

#include <bit>

namespace tilewire::jit {
namespace {

constexpr float kLog2E = 1.44269504f;
// e^low rounds to 0 and e^high to infinity.
constexpr float kExpLow = -105.0f, kExpHigh = 89.0f;
constexpr float kNoSmaller = -30.0f;  // e^v - 1 is -1 to the last bit from there on
constexpr std::initializer_list<float> kExpCoefficients = {
    1.39505998e-3f, 8.36895406e-3f, 4.16662060e-2f, 1.66665182e-1f, 0.5f, 1, 1};

}  // namespace

Xbyak::Address VectorMath::Constant(float value) {
  return ConstantBits(std::bit_cast<uint32_t>(value));
}

// Units with masks broadcast a memory operand by themselves; for others the table holds whole
// vectors.
int VectorMath::OffsetOf(uint32_t bits) {
  int index = 0;
  while (index < constants_.size() && constants_[index] != bits) ++index;
  if (index == constants_.size()) constants_.push_back(bits);
  return index * (unit_.has_masks() ? 4 : unit_.bytes());
}

Xbyak::Address VectorMath::ConstantBits(uint32_t bits) {
  const int offset = OffsetOf(bits);
  return unit_.has_masks() ? generator_->ptr_b[table_ + offset] : generator_->ptr[table_ + offset];
}

void VectorMath::LoadTable() { generator_->lea(table_, generator_->ptr[generator_->rip + label_]); }

void VectorMath::EmitTable() {
  generator_->align(32);
  generator_->L(label_);
  for (uint32_t bits : constants_) {
    for (int copy = unit_.has_masks() ? 1 : unit_.lanes(); copy > 0; --copy) generator_->dd(bits);
  }
  if (lane_tables_.empty()) return;
  generator_->align(64);
  generator_->L(lanes_label_);
  for (const LaneTable* table : lane_tables_) {
    for (float value : *table) generator_->dd(std::bit_cast<uint32_t>(value));
  }
}

void VectorMath::Abs(const Vector& v) { unit_.And(generator_, v, v, ConstantBits(0x7FFFFFFF)); }

void VectorMath::Load(const Vector& v, float value) {
  generator_->vbroadcastss(v, generator_->ptr[table_ + OffsetOf(std::bit_cast<uint32_t>(value))]);
}

// The second source of vmaxps and vminps is the result when either is NaN: it must be v.
void VectorMath::AtLeast(const Vector& v, float low, const Vector& s0) {
  Load(s0, low);
  generator_->vmaxps(v, s0, v);
}

void VectorMath::AtMost(const Vector& v, float high, const Vector& s0) {
  Load(s0, high);
  generator_->vminps(v, s0, v);
}

void VectorMath::KeepWhere(const Vector& v, const Vector& a, Predicate predicate,
                           const Xbyak::Operand& b, const Vector& s0) {
  if (unit_.has_masks()) {
    generator_->vcmpps(mask_, a, b, static_cast<int>(predicate));
    return generator_->vmovaps(v | mask_ | Xbyak::util::T_z, v);
  }
  generator_->vcmpps(s0, a, b, static_cast<int>(predicate));
  generator_->vandps(v, v, s0);
}

void VectorMath::TakeWhere(const Vector& v, const Vector& a, Predicate predicate,
                           const Xbyak::Operand& b, const Vector& other, const Vector& s0) {
  if (unit_.has_masks()) {
    generator_->vcmpps(mask_, a, b, static_cast<int>(predicate));
    return generator_->vmovaps(v | mask_, other);
  }
  generator_->vcmpps(s0, a, b, static_cast<int>(predicate));
  generator_->vblendvps(v, v, other, s0);
}

void VectorMath::Polynomial(const Vector& p, const Vector& x,
                            std::initializer_list<float> coefficients) {
  bool first = true;
  for (float coefficient : coefficients) {
    if (first) {
      Load(p, coefficient);
    } else {
      generator_->vfmadd213ps(p, x, Constant(coefficient));
    }
    first = false;
  }
}

void VectorMath::ReduceByLn2(const Vector& v, const Vector& n) {
  generator_->vmulps(n, v, Constant(kLog2E));
  Round(n, Rounding::kNearest);
  generator_->vfnmadd231ps(v, n, Constant(kLn2High));
  generator_->vfnmadd231ps(v, n, Constant(kLn2Low));
}

void VectorMath::PowerOf2(const Vector& n) {
  generator_->vpaddd(n, n, ConstantBits(127));
  generator_->vpslld(n, n, 23);
}

void VectorMath::Exp(const Vector& v, const Vector& s0, const Vector& s1) {
  AtLeast(v, kExpLow, s0);
  AtMost(v, kExpHigh, s0);
  ReduceByLn2(v, s0);
  Polynomial(s1, v, kExpCoefficients);
  ScaleByPowerOf2(v, s1, s0);
}

void VectorMath::ExpOfSum(const Vector& v, const Vector& low, const Vector& s0, const Vector& s1) {
  // Beyond the ends by more than a `low` of 1 can bring back.
  AtLeast(v, kExpLow - 2, s0);
  AtMost(v, kExpHigh + 2, s0);
  ExpOfNearSum(v, low, s0, s1);
}

void VectorMath::ExpOfNearSum(const Vector& v, const Vector& low, const Vector& s0,
                              const Vector& s1) {
  ReduceByLn2(v, s0);
  generator_->vaddps(v, v, low);
  Polynomial(s1, v, kExpCoefficients);
  ScaleByPowerOf2(v, s1, s0);
}

void VectorMath::ScaleByPowerOf2(const Vector& v, const Vector& p, const Vector& n) {
  if (unit_.has_masks()) return generator_->vscalefps(v, p, n);
  // 2^n in two factors, each in range where 2^n itself is not.
  generator_->vcvtps2dq(n, n);
  generator_->vpsrad(v, n, 1);
  generator_->vpsubd(n, n, v);
  PowerOf2(v);
  PowerOf2(n);
  generator_->vmulps(v, p, v);
  generator_->vmulps(v, v, n);
}

void VectorMath::ReduceMinus1(const Vector& v, const Vector& n, const Vector& p) {
  ReduceByLn2(v, n);
  Polynomial(p, v, {1.39505998e-3f, 8.36895406e-3f, 4.16662060e-2f, 1.66665182e-1f, 0.5f});
  generator_->vmulps(p, p, v);
  generator_->vfmadd213ps(p, v, v);  // e^r - 1 = r + r (r q)
  generator_->vcvtps2dq(n, n);
}

void VectorMath::ExpMinus1(const Vector& v, const Vector& s0, const Vector& s1) {
  AtLeast(v, kNoSmaller, s0);
  const Vector &n = s0, &p = s1;
  ReduceMinus1(v, n, p);
  PowerOf2(n);
  generator_->vsubps(v, n, Constant(1));
  generator_->vfmadd231ps(v, n, p);
}

// Half of it, because 2^n is infinite for the largest powers that are not, and then twice that.
void VectorMath::ExpMinus1OfAny(const Vector& v, const Vector& s0, const Vector& s1) {
  AtLeast(v, kNoSmaller, s0);
  AtMost(v, kExpHigh, s0);
  const Vector &n = s0, &p = s1;
  ReduceMinus1(v, n, p);
  generator_->vpsubd(n, n, ConstantBits(1));
  PowerOf2(n);
  generator_->vsubps(v, n, Constant(0.5f));
  generator_->vfmadd231ps(v, n, p);
  generator_->vaddps(v, v, v);
}

void VectorMath::NegativeAbs(const Vector& v) {
  unit_.Or(generator_, v, v, ConstantBits(0x80000000));
}

void VectorMath::Logistic(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2) {
  const Vector& x = s2;
  generator_->vmovaps(x, v);
  NegativeAbs(v);
  Exp(v, s0, s1);
  generator_->vaddps(s0, v, Constant(1));
  Load(s1, 1);
  TakeWhereNegative(s1, x, v);
  generator_->vdivps(v, s1, s0);
}

void VectorMath::Tanh(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2) {
  const Vector& x = s2;
  generator_->vmovaps(x, v);
  Abs(v);
  generator_->vaddps(v, v, v);
  Exp(v, s0, s1);
  generator_->vaddps(v, v, Constant(1));
  Load(s0, -2);
  generator_->vdivps(v, s0, v);
  generator_->vaddps(v, v, Constant(1));  // tanh|x|, at least 0 where it is used
  // v or'ed with x's sign.
  unit_.And(generator_, s0, x, ConstantBits(0x80000000));
  unit_.Or(generator_, v, v, s0);
  const Vector &z = s0, &p = s1;
  generator_->vmulps(z, x, x);
  Polynomial(p, z,
             {-5.71703678e-3f, 2.06505787e-2f, -5.37434965e-2f, 1.33314908e-1f, -3.33332837e-1f});
  generator_->vmulps(p, p, z);
  generator_->vfmadd213ps(p, x, x);
  generator_->vsubps(z, z, Constant(0.625f * 0.625f));
  TakeWhereNegative(v, z, p);
}

void VectorMath::Erf(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2) {
  constexpr float kFarthest = 4, kNear = 0.927734375f;
  const Vector &x = s2, &p = s1;
  generator_->vmovaps(x, v);
  Abs(v);
  AtMost(v, kFarthest, s0);
  Polynomial(p, v,
             {-2.137238771e-4f, 3.212797688e-3f, -2.288302407e-2f, 1.052509770e-1f, 6.357265711e-1f,
              1.285119057e-1f});
  generator_->vfnmsub213ps(p, v, v);
  generator_->vmovaps(v, p);
  Exp(v, s0, s1);
  Load(s0, 1);
  generator_->vsubps(v, s0, v);  // erf|x|, at least 0 where it is used
  unit_.And(generator_, s0, x, ConstantBits(0x80000000));
  unit_.Or(generator_, v, v, s0);
  const Vector& z = s0;
  generator_->vmulps(z, x, x);
  Polynomial(p, z,
             {-5.964098964e-4f, 4.987973720e-3f, -2.676310390e-2f, 1.128172055e-1f,
              -3.761248589e-1f, 1.283791512e-1f});
  generator_->vfmadd213ps(p, x, x);
  generator_->vsubps(z, z, Constant(kNear * kNear));
  TakeWhereNegative(v, z, p);
}

void VectorMath::SoftPlus(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2) {
  const Vector& x = s2;
  generator_->vmovaps(x, v);
  NegativeAbs(v);
  Exp(v, s0, s1);
  generator_->vaddps(s0, v, Constant(2));
  generator_->vaddps(v, v, v);
  generator_->vdivps(v, v, s0);  // 2 t / (2 + t)
  const Vector &z = s0, &p = s1;
  generator_->vmulps(z, v, v);
  Polynomial(p, z,
             {1.18656953e-4f, 4.18508920e-4f, 2.23569409e-3f, 1.24996491e-2f, 8.33333433e-2f});
  generator_->vmulps(p, p, z);
  generator_->vfmadd213ps(v, p, v);
  AtLeast(x, 0, s0);
  generator_->vaddps(v, v, x);
}

void VectorMath::Mish(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2,
                      const Vector& s3) {
  const Vector &x = s3, &numerator = s2, &denominator = v;
  generator_->vmovaps(x, v);
  NegativeAbs(v);
  Exp(v, s0, s1);
  generator_->vaddps(s0, v, Constant(2));
  generator_->vmulps(s0, s0, v);
  generator_->vaddps(s1, s0, Constant(2));  // s0 / s1 for x < 0
  generator_->vaddps(numerator, v, v);
  generator_->vaddps(numerator, numerator, Constant(1));
  generator_->vmulps(v, v, v);
  generator_->vaddps(v, v, v);
  generator_->vaddps(denominator, v, numerator);
  TakeWhereNegative(numerator, x, s0);
  TakeWhereNegative(denominator, x, s1);
  generator_->vdivps(v, numerator, denominator);
  generator_->vmulps(v, v, x);
}

}  // namespace tilewire::jit
