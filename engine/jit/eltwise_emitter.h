// SPDX-License-Identifier: Apache-2.0
//
// Emits the machine code of one elementwise function, in place on vector registers, into a
// generator:
//
//   EltwiseEmitter relu(this, unit, op, {.table = rax, .scratch = {29, 30, 31}, .mask = k2});
//   relu.LoadTable();           // once before the first Apply; `table` is taken from then on
//   relu.Apply({0, 1, 2, 3});   // registers 0 to 3 = f(registers 0 to 3)
//   ... ret();
//   relu.EmitTable();           // once, after the last ret: the constants
//
// The code of a function stands in its row of functions.inc, VECTORS; parts of it that take more
// than a few instructions are in eltwise_emitter.cc.
//
// Accuracy against functions::EltwiseScalar: within the units that AllowedUlps() in
// tests/support/function_cases.h allows. Used while generating; thread-compatible.
#ifndef ENGINE_JIT_ELTWISE_EMITTER_H_
#define ENGINE_JIT_ELTWISE_EMITTER_H_

#include <vector>

#include "absl/types/span.h"
#include "engine/functions/function.h"
#include "engine/jit/vector_math.h"
#include "engine/jit/vector_unit.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

class EltwiseEmitter {
 public:
  struct Registers {
    Xbyak::Reg64 table;  // holds the address of the constants between LoadTable and the last Apply
    std::vector<int> scratch;  // vector registers that Apply may overwrite; >= ScratchCount
    Xbyak::Opmask mask = Xbyak::Opmask(1);  // overwritten by Apply where the unit has masks
  };

  // How many scratch vector registers Apply needs (0 to 5) for a function that has code.
  static int ScratchCount(functions::Function function);

  // `op` is of one real number and has code.
  EltwiseEmitter(Xbyak::CodeGenerator* generator, const VectorUnit& unit,
                 const functions::EltwiseOp& op, Registers registers);

  void LoadTable();
  void Apply(absl::Span<const int> vector_registers);
  void EmitTable();

 private:
  using Vector = VectorMath::Vector;
  using Scratch = VectorMath::Scratch5;
  struct Codes;  // the table
  void ApplyRelu(const Vector& v, const Scratch& s);
  void ApplyElu(const Vector& v, const Scratch& s);
  void ApplySelu(const Vector& v, const Scratch& s);
  void ApplyCelu(const Vector& v, const Scratch& s);
  void ApplyShrink(const Vector& v, const Scratch& s);
  void ApplySign(const Vector& v, const Scratch& s);
  void ApplyTruncate(const Vector& v, const Scratch& s);
  void ApplyRoundBits(const Vector& v, const Scratch& s);
  void ApplyScaledTanh(const Vector& v, const Scratch& s);
  void ApplyLine(const Vector& v, const Scratch& s);  // alpha v + beta
  void ApplyHardSwish(const Vector& v, const Scratch& s);
  void ApplySwish(const Vector& v, const Scratch& s);
  void ApplyGelu(const Vector& v, const Scratch& s);
  void ApplyGeluErf(const Vector& v) { ApplyGeluErf(absl::MakeConstSpan({v.getIdx()})); }
  void ApplyGeluErf(absl::Span<const int> vector_registers);
  void ApplyPow(const Vector& v, const Scratch& s);
  // v = v `predicate` b ? 1 : 0
  void ApplyTruth(const Vector& v, const Scratch& s, VectorMath::Predicate predicate,
                  const Xbyak::Operand& b);
  // Scratch registers from the i-th on, as many as there are.
  Scratch ScratchFrom(size_t i) const;

  Xbyak::CodeGenerator* generator_;
  functions::EltwiseOp op_;
  Registers registers_;
  VectorMath math_;
};

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_ELTWISE_EMITTER_H_
