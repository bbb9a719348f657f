// SPDX-License-Identifier: Apache-2.0
//
// Emits f32 functions on whole vector registers of any unit. Their constants gather in a table
// after the code. Used while generating; thread-compatible.
#ifndef ENGINE_JIT_VECTOR_MATH_H_
#define ENGINE_JIT_VECTOR_MATH_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/types/span.h"
#include "engine/jit/vector_unit.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

// ln 2 as the sum of two constants. The first has 9 bits, so that its product with an exponent is
// exact.
constexpr float kLn2High = 0.693359375f;
constexpr float kLn2Low = -2.12194440e-4f;

class VectorMath {
 public:
  using Vector = Xbyak::Xmm;  // of the unit's width

  // `table` must hold the table's address while emitted code runs. `mask` is overwritten where the
  // unit has masks.
  VectorMath(Xbyak::CodeGenerator* generator, const VectorUnit& unit, Xbyak::Reg64 table,
             Xbyak::Opmask mask)
      : generator_(generator), unit_(unit), table_(table), mask_(mask) {}

  const VectorUnit& unit() const { return unit_; }
  // A vector that holds `value` in every lane, as a memory operand; bits for integers and masks.
  Xbyak::Address Constant(float value);
  Xbyak::Address ConstantBits(uint32_t bits);

  void LoadTable();  // before the first function, wherever `table` is free from then on
  void EmitTable();  // once, after the last ret

  // All scratch registers are distinct from v and are overwritten. NaN stays NaN.
  void Abs(const Vector& v);
  void NegativeAbs(const Vector& v);
  void AtLeast(const Vector& v, float low, const Vector& s0);  // v < low ? low : v
  void AtMost(const Vector& v, float high, const Vector& s0);
  void Clamp(const Vector& v, float low, float high, const Vector& s0) {
    AtLeast(v, low, s0);
    AtMost(v, high, s0);
  }
  void Load(const Vector& v, float value);  // in every lane
  // v = (sign bit of `sign`) ? negative : v
  void TakeWhereNegative(const Vector& v, const Vector& sign, const Vector& negative) {
    unit_.TakeWhereNegative(generator_, v, sign, negative, mask_);
  }
  // v = (a `predicate` b) ? v : 0, and v = (a `predicate` b) ? other : v.
  enum class Predicate : uint8_t {  // as vcmpps takes them; all but kUnordered are false for NaN
    kEqual = 0,
    kLess = 1,
    kUnordered = 3,
    kOrdered = 7,
    kUnequal = 12,
    kGreater = 14,
  };
  void KeepWhere(const Vector& v, const Vector& a, Predicate predicate, const Xbyak::Operand& b,
                 const Vector& s0);
  void TakeWhere(const Vector& v, const Vector& a, Predicate predicate, const Xbyak::Operand& b,
                 const Vector& other, const Vector& s0);
  void Exp(const Vector& v, const Vector& s0, const Vector& s1);
  // e^v - 1 without cancellation, v <= 0.
  void ExpMinus1(const Vector& v, const Vector& s0, const Vector& s1);
  // The same of any v; what is below 2^-126 loses a bit.
  void ExpMinus1OfAny(const Vector& v, const Vector& s0, const Vector& s1);
  // 1 / (1 + e^-v).
  void Logistic(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2);
  void Tanh(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2);
  // log(1 + e^v).
  void SoftPlus(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2);
  // v tanh(log(1 + e^v)).
  void Mish(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2,
            const Vector& s3);
  void Erf(const Vector& v, const Vector& s0, const Vector& s1, const Vector& s2);
  enum class Rounding : uint8_t { kNearest = 0, kDown = 1, kUp = 2, kCut = 3 };
  void Round(const Vector& v, Rounding rounding) {
    unit_.Round(generator_, v, static_cast<int>(rounding));
  }
  using Scratch5 = std::array<Vector, 5>;
  // v / 2 (1 + erf(v / sqrt(2))); see vector_gelu.cc. Several vectors, each with its own scratch,
  // take less time than one after the other: each waits for its own results most of the time.
  void GeluErf(absl::Span<const Vector> vs, absl::Span<const Scratch5> scratch);
  // The natural logarithm: NaN below 0, -infinity at 0.
  void Log(const Vector& v, const Scratch5& s);
  // v^y as C's powf gives it; denormal v counts as 0.
  void Pow(const Vector& v, float y, const Scratch5& s);

 private:
  // n = v / ln 2, rounded, and v = r = v - n ln 2, so that e^v = 2^n e^r with |r| <= ln 2 / 2.
  void ReduceByLn2(const Vector& v, const Vector& n);
  // p = the polynomial in x whose coefficients are given from the highest power to the lowest.
  void Polynomial(const Vector& p, const Vector& x, std::initializer_list<float> coefficients);
  // v = e^(v + low), where low is a rounding error of v.
  void ExpOfSum(const Vector& v, const Vector& low, const Vector& s0, const Vector& s1);
  // The same for v in [-120, 88].
  void ExpOfNearSum(const Vector& v, const Vector& low, const Vector& s0, const Vector& s1);
  // p = erfc(x / sqrt(2)) / 2 e^(x^2 / 2), 0 <= x < 15; by a table where the unit has vectors of 16
  // lanes. x is overwritten.
  void ScaledErfc(const Vector& p, const Vector& x, const Vector& s0, const Vector& s1);
  void ScaledErfcByTable(const Vector& p, const Vector& x, const Vector& s0, const Vector& s1);
  // v = p 2^n, where p = e^r with r in [-ln 2 / 2, ln 2 / 2].
  void ScaleByPowerOf2(const Vector& v, const Vector& p, const Vector& n);
  // v + low = log v, for v > 0 and finite.
  void LogParts(const Vector& v, const Vector& low, const Vector& s0, const Vector& s1,
                const Vector& s2);
  void FinishPow(const Vector& v, const Vector& x, float y, const Vector& s0, const Vector& s1);
  // e^v - 1 = 2^n p + (2^n - 1), with n as an integer in each lane.
  void ReduceMinus1(const Vector& v, const Vector& n, const Vector& p);
  // n = 2^n for integral n in [-126, 127].
  void PowerOf2(const Vector& n);

  int OffsetOf(uint32_t bits);  // into the table, in bytes
  // A number per lane of a vector of 16, of static storage, as a memory operand.
  using LaneTable = std::array<float, 16>;
  Xbyak::Address Lanes(const LaneTable& table);

  Xbyak::CodeGenerator* generator_;
  const VectorUnit unit_;
  Xbyak::Reg64 table_;
  Xbyak::Opmask mask_;
  Xbyak::Label label_, lanes_label_;
  std::vector<uint32_t> constants_;
  std::vector<const LaneTable*> lane_tables_;
};

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_VECTOR_MATH_H_
