// SPDX-License-Identifier: Apache-2.0
//
// The first lanes of a vector, for what remains after the last whole one: loads and stores that
// touch no byte of the other lanes. An opmask register holds them where the unit has masks,
// otherwise a vector register, which is loaded from a table after the code:
//
//   TailMask tail(this, unit, {.spare = rax, .opmask = k2, .vector = 15});
//   tail.Set(count);                // before the first access: a register, or a number
//   tail.Load(unit.Vector(0), ptr[src]);
//   tail.Store(ptr[dst], unit.Vector(0));
//   ... ret();
//   tail.EmitTable();               // once, after the last ret
//
// Lanes are of 32 bits. Used while generating; thread-compatible.
#ifndef ENGINE_JIT_TAIL_MASK_H_
#define ENGINE_JIT_TAIL_MASK_H_

#include "engine/jit/vector_unit.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

// The only table of masks in the engine: `lanes` ones followed by `lanes` zeros. The mask of the
// first n lanes begins n lanes before the zeros. When all accesses are of one n, only that mask is
// emitted.
class MaskTable {
 public:
  // The mask of the first `count` lanes, when EmitOnly(count) or Emit() follows.
  Xbyak::Address Only(Xbyak::CodeGenerator* g) const { return g->ptr[g->rip + label_]; }
  // The table's address; the mask of n lanes is (lanes - n) * 4 bytes further on.
  void LoadAddress(Xbyak::CodeGenerator* g, const Xbyak::Reg64& to) const;

  void Emit(Xbyak::CodeGenerator* g, const VectorUnit& unit);
  void EmitOnly(Xbyak::CodeGenerator* g, const VectorUnit& unit, int count);

 private:
  void EmitLanes(Xbyak::CodeGenerator* g, const VectorUnit& unit, int ones, int zeros);

  Xbyak::Label label_;
};

class TailMask {
 public:
  struct Registers {
    Xbyak::Reg64 spare;    // overwritten by Set()
    Xbyak::Opmask opmask;  // holds the mask from Set() on, where the unit has masks,
    int vector = 15;       // and otherwise this vector register
  };

  TailMask(Xbyak::CodeGenerator* generator, const VectorUnit& unit, const Registers& registers)
      : g_(generator), unit_(unit), registers_(registers) {}

  // The first `count` lanes, 0 <= count <= lanes. Overwrites the register where the unit has no
  // masks.
  void Set(const Xbyak::Reg64& count);
  // The same for a number of lanes that is known, and the only one in all of the code.
  void Set(int count);

  void Load(const Xbyak::Xmm& to, const Xbyak::Address& from);  // zeros in the other lanes
  // Leaves the other lanes as they are. Only where the unit has masks.
  void LoadInto(const Xbyak::Xmm& to, const Xbyak::Address& from);
  void Store(const Xbyak::Address& to, const Xbyak::Xmm& from);
  // The whole vector, or its masked lanes alone.
  void Load(const Xbyak::Xmm& to, const Xbyak::Address& from, bool masked);
  void Store(const Xbyak::Address& to, const Xbyak::Xmm& from, bool masked);
  // The other lanes of `v` become zeros, or those of `other`.
  void ZeroOthers(const Xbyak::Xmm& v);
  void ReplaceOthers(const Xbyak::Xmm& v, const Xbyak::Xmm& other);

  void EmitTable();

 private:
  Xbyak::Xmm Vector() const { return unit_.Vector(registers_.vector); }

  Xbyak::CodeGenerator* const g_;
  const VectorUnit unit_;
  const Registers registers_;
  int only_ = 0;  // the one number of lanes, when all of the code uses the same
  MaskTable table_;
};

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_TAIL_MASK_H_
