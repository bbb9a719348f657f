// SPDX-License-Identifier: Apache-2.0
//
// Emits f32 functions on whole vector registers, the same way for AVX2 (ymm) and AVX-512 (zmm).
// Constants gather in a table behind the code. Used while generating; thread-compatible.
#ifndef ENGINE_JIT_VECTOR_MATH_H_
#define ENGINE_JIT_VECTOR_MATH_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "engine/cpu/isa.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

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

 private:
  // v = r, n = v's number of ln 2, so that e^v = 2^n e^r, |r| <= ln 2 / 2.
  void ReduceByLn2(const Vector& v, const Vector& n);
  // p = polynomial in x, coefficients from the highest power to the lowest.
  void Polynomial(const Vector& p, const Vector& x, std::initializer_list<float> coefficients);
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
