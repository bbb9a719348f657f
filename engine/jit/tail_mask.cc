// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/tail_mask.h"

#include <cstdint>

#include "engine/base/check.h"

namespace tilewire::jit {

void MaskTable::LoadAddress(Xbyak::CodeGenerator* g, const Xbyak::Reg64& to) const {
  g->lea(to, g->ptr[g->rip + label_]);
}

void MaskTable::Emit(Xbyak::CodeGenerator* g, const VectorUnit& unit) {
  EmitLanes(g, unit, unit.lanes(), unit.lanes());
}

void MaskTable::EmitOnly(Xbyak::CodeGenerator* g, const VectorUnit& unit, int count) {
  EmitLanes(g, unit, count, unit.lanes() - count);
}

void MaskTable::EmitLanes(Xbyak::CodeGenerator* g, const VectorUnit& unit, int ones, int zeros) {
  g->align(unit.bytes());
  g->L(label_);
  for (int i = 0; i < ones; ++i) g->dd(0xFFFFFFFF);
  for (int i = 0; i < zeros; ++i) g->dd(0);
}

void TailMask::Set(const Xbyak::Reg64& count) {
  const Xbyak::Reg64& spare = registers_.spare;
  if (unit_.has_masks()) {
    g_->mov(spare.cvt32(), static_cast<uint32_t>((uint64_t{1} << unit_.lanes()) - 1));
    g_->bzhi(spare.cvt32(), spare.cvt32(), count.cvt32());
    g_->kmovw(registers_.opmask, spare.cvt32());
    return;
  }
  table_.LoadAddress(g_, spare);
  g_->add(spare, unit_.bytes());
  g_->shl(count, 2);
  g_->sub(spare, count);
  g_->vmovups(Vector(), g_->ptr[spare]);
}

void TailMask::Set(int count) {
  TILEWIRE_CHECK(count >= 0 && count <= unit_.lanes(), "as many lanes as the unit has, at most");
  only_ = count;
  if (unit_.has_masks()) {
    g_->mov(registers_.spare.cvt32(), (1u << count) - 1);
    g_->kmovw(registers_.opmask, registers_.spare.cvt32());
  } else {
    g_->vmovups(Vector(), table_.Only(g_));
  }
}

void TailMask::Load(const Xbyak::Xmm& to, const Xbyak::Address& from) {
  if (unit_.has_masks()) {
    g_->vmovups(to | registers_.opmask | Xbyak::util::T_z, from);
  } else {
    g_->vmaskmovps(to, Vector(), from);
  }
}

void TailMask::LoadInto(const Xbyak::Xmm& to, const Xbyak::Address& from) {
  g_->vmovups(to | registers_.opmask, from);
}

void TailMask::Store(const Xbyak::Address& to, const Xbyak::Xmm& from) {
  if (unit_.has_masks()) {
    g_->vmovups(to | registers_.opmask, from);
  } else {
    g_->vmaskmovps(to, Vector(), from);
  }
}

void TailMask::Load(const Xbyak::Xmm& to, const Xbyak::Address& from, bool masked) {
  masked ? Load(to, from) : g_->vmovups(to, from);
}

void TailMask::Store(const Xbyak::Address& to, const Xbyak::Xmm& from, bool masked) {
  masked ? Store(to, from) : g_->vmovups(to, from);
}

void TailMask::ZeroOthers(const Xbyak::Xmm& v) {
  if (unit_.has_masks()) {
    g_->vmovaps(v | registers_.opmask | Xbyak::util::T_z, v);
  } else {
    g_->vandps(v, v, Vector());
  }
}

void TailMask::ReplaceOthers(const Xbyak::Xmm& v, const Xbyak::Xmm& other) {
  if (unit_.has_masks()) {
    g_->vblendmps(v | registers_.opmask, other, v);
  } else {
    g_->vblendvps(v, other, v, Vector());
  }
}

void TailMask::EmitTable() {
  if (unit_.has_masks()) return;
  only_ != 0 ? table_.EmitOnly(g_, unit_, only_) : table_.Emit(g_, unit_);
}

}  // namespace tilewire::jit
