// SPDX-License-Identifier: Apache-2.0
//
// Emits functions of functions.inc on vectors of f32, or of integers in lanes of 4 or 8 bytes;
// those of one f32 by eltwise_emitter.h.
// Integers of fewer bits are extended to 4 bytes or more, and results hold theirs in the low bits.
// Truth values are f32, and take half a register beside lanes of 8 bytes, or integers in lanes.
//
//   ElementwiseEmitter emitter(this, unit, {function}, {.bytes = 4}, registers);
//   emitter.EmitConstants();          // once
//   emitter.Apply(value, others);     // value = function(value, others...)
//   emitter.EmitTable();              // once, after the last ret
//
// Used while generating; thread-compatible.
#ifndef ENGINE_JIT_ELEMENTWISE_EMITTER_H_
#define ENGINE_JIT_ELEMENTWISE_EMITTER_H_

#include <optional>

#include "absl/types/span.h"
#include "engine/functions/function.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/jit/vector_unit.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

// The contents of the numbers' lanes: those of all sources but a condition.
struct LaneKind {
  int bytes = 4;         // 4 or 8
  bool is_real = false;  // f32
  bool is_signed = false;
  bool is_narrow = false;       // integers of up to 16 bits
  bool integer_truths = false;  // results of predicates and the condition of kWhere, else f32

  // Whether the integers compare as signed ones: narrow ones have no bit where the lane's sign is.
  bool orders_signed() const { return is_signed || is_narrow; }
};

class ElementwiseEmitter {
 public:
  struct Registers {
    Xbyak::Reg64 spare;      // overwritten
    Xbyak::Opmask masks[2];  // overwritten, where the unit has masks
    int scratch[3];          // vectors that Apply() overwrites
    // Vectors: the first keeps what EmitConstants() loads; both are overwritten where the function
    // is of one real number.
    int constants[2];
  };

  // Whether there is code for the function.
  static bool Has(const VectorUnit& unit, functions::Function function, const LaneKind& lanes);

  ElementwiseEmitter(Xbyak::CodeGenerator* generator, const VectorUnit& unit,
                     const functions::Elementwise& elementwise, const LaneKind& lanes,
                     const Registers& registers);

  void EmitConstants();
  // Leaves `others` as they are.
  void Apply(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others);
  void EmitTable();

 private:
  using Function = functions::Function;

  Xbyak::Xmm Scratch(int i) const { return unit_.Vector(registers_.scratch[i]); }
  Xbyak::Xmm Constant(int i) const { return unit_.Vector(registers_.constants[i]); }
  Xbyak::Xmm Reals(const Xbyak::Xmm& v) const;  // the part of a register that holds f32
  static Xbyak::Ymm HalfOf(const Xbyak::Xmm& v) { return Xbyak::Ymm(v.getIdx()); }
  static Xbyak::Xmm LowestOf(const Xbyak::Xmm& v) { return Xbyak::Xmm(v.getIdx()); }
  bool is_wide() const { return lanes_.bytes == 8; }
  Xbyak::Xmm Truths(const Xbyak::Xmm& v) const { return lanes_.integer_truths ? v : Reals(v); }
  void ApplyToOneReal(const Xbyak::Xmm& v);
  void ApplyToReals(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others);
  void ApplyToIntegers(const Xbyak::Xmm& v, absl::Span<const Xbyak::Xmm> others);
  void ApplyToOneInteger(const Xbyak::Xmm& v);

  void Xor(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void Subtract(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void Multiply(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void Shift(const Xbyak::Xmm& value, const Xbyak::Xmm& by);
  // to = all ones where a = b, or a > b as signed integers, without masks.
  void EqualLanes(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void GreaterLanes(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void GreaterOf(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void Extremum(const Xbyak::Xmm& value, const Xbyak::Xmm& other);
  void Sign(const Xbyak::Xmm& value);
  void Abs(const Xbyak::Xmm& value);
  void PRelu(const Xbyak::Xmm& value, const Xbyak::Xmm& slope);

  void Quotient(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void QuotientOfDoubles(const Xbyak::Xmm& to, const Xbyak::Xmm& a, const Xbyak::Xmm& b);
  void Divide(const Xbyak::Xmm& value, const Xbyak::Xmm& other);
  void ZeroWhereZero(const Xbyak::Xmm& value, const Xbyak::Xmm& where);
  void RoundRemainderDown(const Xbyak::Xmm& rest, const Xbyak::Xmm& divisor);

  void Predicate(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others);
  void CompareToMask(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others);
  void NonZeroToMask(const Xbyak::Opmask& to, const Xbyak::Xmm& v);
  bool CompareToVector(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others);
  bool OrderToVector(const Xbyak::Xmm& value, const Xbyak::Xmm& other);
  void ZeroToVector(const Xbyak::Xmm& to, const Xbyak::Xmm& v);
  void Where(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others);
  void WhereByMask(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others);

  Xbyak::CodeGenerator* const g_;
  const VectorUnit unit_;
  const functions::Elementwise elementwise_;
  const LaneKind lanes_;
  const Registers registers_;
  std::optional<EltwiseEmitter> of_one_real_;
};

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_ELEMENTWISE_EMITTER_H_
