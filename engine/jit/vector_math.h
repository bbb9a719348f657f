// SPDX-License-Identifier: Apache-2.0
//
// Emits f32 functions on whole vector registers, the same way for AVX2 (ymm) and AVX-512 (zmm).
// Constants gather in a table behind the code. Used while generating; thread-compatible.
#ifndef ENGINE_JIT_VECTOR_MATH_H_
#define ENGINE_JIT_VECTOR_MATH_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "engine/cpu/isa.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

// ln 2 as a sum of which the first has 9 bits: its product with an exponent is exact.
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;

class VectorMath {
 public:
  using Vector = Xbyak::Xmm;  // a ymm or a zmm

  // `mask` is used on AVX-512 only; `table` must hold the table's address while emitted code runs.
  VectorMath(Xbyak::CodeGenerator* generator, cpu::Isa isa, Xbyak::Reg64 table, Xbyak::Opmask mask)
      : generator_(generator), isa_(isa), table_(table), mask_(mask) {}

  bool is_avx512() const { return isa_ >= cpu::Isa::kAvx512; }
  Vector Register(int index) const;
  // A vector that holds `value` in every lane, as a memory operand; bits for integers and masks.
  Xbyak::Address Constant(float value);
  Xbyak::Address ConstantBits(uint32_t bits);

  void LoadTable();
  void EmitTable();

  // All scratch registers are distinct from v and lose their contents. NaN stays NaN.
  void Abs(const Vector& v);
  void NegativeAbs(const Vector& v);
  void AtLeast(const Vector& v, float low, const Vector& s0);  // v < low ? low : v
  void AtMost(const Vector& v, float high, const Vector& s0);
  void Load(const Vector& v, float value);  // in every lane
  // v = (sign bit of `sign`) ? negative : v
  void TakeWhereNegative(const Vector& v, const Vector& sign, const Vector& negative);
  void Exp(const Vector& v, const Vector& s0, const Vector& s1);
  // e^v - 1 without cancellation, v <= 0.
  void ExpMinus1(const Vector& v, const Vector& s0, const Vector& s1);
  // 1 / (1 + e^-v).
  void Logistic(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2);
  void Tanh(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2);
  // log(1 + e^v).
  void SoftPlus(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2);
  // x / 2 (1 + erf(x / sqrt(2))), x tanh(log(1 + e^x)).
  void Mish(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2,
            const Vector& s3);
  enum class Rounding : uint8_t { kNearest = 0, kDown = 1, kUp = 2 };
  void Round(const Vector& v, Rounding rounding);
  using Scratch5 = std::array<Vector, 5>;
  void GeluErf(const Vector& v, const Scratch5& s);
  // The natural logarithm: NaN below 0, -infinity at 0.
  void Log(const Vector& v, const Scratch5& s);
  // v^y as C's powf gives it; denormal v counts as 0.
  void Pow(const Vector& v, float y, const Scratch5& s);

 private:
  // v = r, n = v's number of ln 2, so that e^v = 2^n e^r, |r| <= ln 2 / 2.
  void ReduceByLn2(const Vector& v, const Vector& n);
  // p = polynomial in x, coefficients from the highest power to the lowest.
  void Polynomial(const Vector& p, const Vector& x, std::initializer_list<float> coefficients);
  // e^(v + low) in v, low being a rounding error of v.
  void ExpOfSum(const Vector& v, const Vector& low, const Vector& s0, const Vector& s1);
  // v = p 2^n, p being a power of e in [-ln 2 / 2, ln 2 / 2].
  void ScaleByPowerOf2(const Vector& v, const Vector& p, const Vector& n);
  // v + low = log v for v > 0 and finite.
  void LogParts(const Vector& v, const Vector& low, const Vector& s0, const Vector& s1,
                const Vector& s2);
  void FinishPow(const Vector& v, const Vector& x, float y, const Vector& s0);
  // n = 2^n for integral n in [-126, 127].
  void PowerOf2(const Vector& n);

  int OffsetOf(uint32_t bits);  // in the table, bytes

  Xbyak::CodeGenerator* generator_;
  cpu::Isa isa_;
  Xbyak::Reg64 table_;
  Xbyak::Opmask mask_;
  Xbyak::Label label_;
  std::vector<uint32_t> constants_;
};

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_VECTOR_MATH_H_
