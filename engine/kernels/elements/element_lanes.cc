// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/elements/element_lanes.h"

namespace tilewire {
namespace {

Xbyak::Xmm LowestOf(const Xbyak::Xmm& v) { return Xbyak::Xmm(v.getIdx()); }

}  // namespace

ElementLanes::ElementLanes(Xbyak::CodeGenerator* generator, const VectorUnit& unit, int lane_bytes,
                           const Registers& registers)
    : g_(generator),
      unit_(unit),
      lane_bytes_(lane_bytes),
      registers_(registers),
      tail_(generator, unit, registers.tail) {}

Xbyak::Xmm ElementLanes::Reals(const Xbyak::Xmm& v) const {
  return unit_.WithBytes(count() * static_cast<int>(sizeof(float))).Vector(v.getIdx());
}

bool ElementLanes::IsMoved(DataType type) const {
  return type == DataType::kF32 || SizeOf(type) == lane_bytes_;
}

Xbyak::Xmm ElementLanes::Moved(DataType type, const Xbyak::Xmm& v) const {
  return type == DataType::kF32 ? Reals(v) : v;
}

void ElementLanes::Load(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from, Part part) {
  if (part == Part::kOne) return LoadOne(type, to, from);
  const bool tail = part == Part::kTail;
  const Xbyak::Address address = g_->ptr[from];
  if (!IsMoved(type)) {
    const Xbyak::Xmm masked = to | registers_.tail.opmask | Xbyak::util::T_z;
    return Extend(type, tail ? masked : to, address);
  }
  const Xbyak::Xmm moved = Moved(type, to);
  if (!tail) return g_->vmovups(moved, address);
  if (SizeOf(type) == 4) return tail_.Load(moved, address);
  g_->vmovupd(moved | registers_.tail.opmask | Xbyak::util::T_z, address);
}

void ElementLanes::Extend(DataType type, const Xbyak::Xmm& to, const Xbyak::Address& from) {
  const bool is_signed = IsSigned(type), wide = lane_bytes_ == 8;
  switch (SizeOf(type)) {
    case 1:
      if (wide) return is_signed ? g_->vpmovsxbq(to, from) : g_->vpmovzxbq(to, from);
      return is_signed ? g_->vpmovsxbd(to, from) : g_->vpmovzxbd(to, from);
    case 2:
      if (wide) return is_signed ? g_->vpmovsxwq(to, from) : g_->vpmovzxwq(to, from);
      return is_signed ? g_->vpmovsxwd(to, from) : g_->vpmovzxwd(to, from);
    default:
      return is_signed ? g_->vpmovsxdq(to, from) : g_->vpmovzxdq(to, from);
  }
}

void ElementLanes::LoadSpare(DataType type, const Xbyak::RegExp& from) {
  const Xbyak::Reg64& spare = registers_.tail.spare;
  const bool is_signed = IsSigned(type);
  switch (SizeOf(type)) {
    case 1:
      return is_signed ? g_->movsx(spare, g_->byte[from])
                       : g_->movzx(spare.cvt32(), g_->byte[from]);
    case 2:
      return is_signed ? g_->movsx(spare, g_->word[from])
                       : g_->movzx(spare.cvt32(), g_->word[from]);
    case 4:
      return is_signed ? g_->movsxd(spare, g_->dword[from])
                       : g_->mov(spare.cvt32(), g_->dword[from]);
    default:
      return g_->mov(spare, g_->qword[from]);
  }
}

void ElementLanes::LoadOne(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from) {
  LoadSpare(type, from);
  if (lane_bytes_ == 8) return g_->vmovq(LowestOf(to), registers_.tail.spare);
  g_->vmovd(LowestOf(to), registers_.tail.spare.cvt32());
}

void ElementLanes::Broadcast(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from) {
  if (type == DataType::kF32) return g_->vbroadcastss(Reals(to), g_->dword[from]);
  LoadSpare(type, from);
  const Xbyak::Reg64& spare = registers_.tail.spare;
  const Xbyak::Xmm low = LowestOf(to);
  if (lane_bytes_ == 8) {
    g_->vmovq(low, spare);
    return g_->vpbroadcastq(to, low);
  }
  g_->vmovd(low, spare.cvt32());
  g_->vpbroadcastd(to, low);
}

void ElementLanes::Store(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to,
                         Part part) {
  if (part == Part::kOne) return StoreOne(type, LowestOf(value), to);
  const bool tail = part == Part::kTail;
  const Xbyak::Address address = g_->ptr[to];
  if (!IsMoved(type)) {
    if (!unit_.has_masks()) return CutByShuffle(type, value, address);
    return Cut(type, value, tail ? address | registers_.tail.opmask : address);
  }
  const Xbyak::Xmm moved = Moved(type, value);
  if (!tail) return g_->vmovups(address, moved);
  if (SizeOf(type) == 4) return tail_.Store(address, moved);
  g_->vmovupd(address | registers_.tail.opmask, moved);
}

void ElementLanes::StoreOne(DataType type, const Xbyak::Xmm& low, const Xbyak::RegExp& to) {
  switch (SizeOf(type)) {
    case 1:
      return g_->vpextrb(g_->byte[to], low, 0);
    case 2:
      return g_->vpextrw(g_->word[to], low, 0);
    case 4:
      return g_->vmovd(g_->dword[to], low);
    default:
      return g_->vmovq(g_->qword[to], low);
  }
}

void ElementLanes::Cut(DataType type, const Xbyak::Xmm& value, const Xbyak::Address& to) {
  const bool wide = lane_bytes_ == 8;
  switch (SizeOf(type)) {
    case 1:
      return wide ? g_->vpmovqb(to, value) : g_->vpmovdb(to, value);
    case 2:
      return wide ? g_->vpmovqw(to, value) : g_->vpmovdw(to, value);
    default:
      return g_->vpmovqd(to, value);
  }
}

// Each half of the register gathers the low bytes of its lanes; then the halves are joined.
void ElementLanes::CutByShuffle(DataType type, const Xbyak::Xmm& value, const Xbyak::Address& to) {
  const Xbyak::Xmm low = LowestOf(value), high = Xbyak::Xmm(registers_.scratch);
  const Xbyak::Ymm whole = Xbyak::Ymm(value.getIdx());
  cut_bytes_ = static_cast<int>(SizeOf(type));
  g_->vpshufb(whole, whole, g_->ptr[g_->rip + order_]);
  g_->vextracti128(high, whole, 1);
  switch (cut_bytes_ * count()) {  // in memory
    case 4:
      g_->vpunpcklwd(low, low, high);
      return g_->vmovd(to, low);
    case 8:
      g_->vpunpckldq(low, low, high);
      return g_->vmovq(to, low);
    default:
      g_->vpunpcklqdq(low, low, high);
      return g_->vmovups(to, low);
  }
}

void ElementLanes::EmitTable() {
  tail_.EmitTable();
  if (cut_bytes_ == 0) return;
  constexpr int kHalfBytes = 16, kNothing = 0x80;
  g_->align(2 * kHalfBytes);
  g_->L(order_);
  const int lanes = kHalfBytes / lane_bytes_;
  for (int i = 0; i < 2 * kHalfBytes; ++i) {
    const int lane = i % kHalfBytes / cut_bytes_;
    g_->db(lane < lanes ? lane * lane_bytes_ + i % cut_bytes_ : kNothing);
  }
}

}  // namespace tilewire
