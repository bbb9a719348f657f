// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/elements/vector_conversion.h"

#include <bit>

namespace tilewire {
namespace {

constexpr int kOrdered = 7, kUnordered = 3, kAtLeast = 13;  // predicates of vcmpps

Xbyak::Xmm Low(const Xbyak::Xmm& v) { return Xbyak::Xmm(v.getIdx()); }
Xbyak::Ymm Half(const Xbyak::Xmm& v) { return Xbyak::Ymm(v.getIdx()); }

bool IsHalf(DataType type) { return type == DataType::kF16 || type == DataType::kBf16; }

// The smallest value that becomes the largest of its type. For s32 it is one more than that,
// because 2^31 - 1 is not a float.
float UpperBound(DataType type) {
  if (type == DataType::kS32) return 0x1p31f;
  return type == DataType::kU8 ? 255.0f : 127.0f;
}

}  // namespace

Xbyak::Xmm VectorConversion::MaskedIf(bool tail, const Xbyak::Xmm& to) const {
  return tail ? to | registers_.tail | Xbyak::util::T_z : to;
}

Xbyak::Address VectorConversion::MaskedIf(bool tail, const Xbyak::Address& to) const {
  return tail ? to | registers_.tail : to;
}

void VectorConversion::LoadTailMask() {
  if (!unit_.has_masks()) return;
  g_->mov(registers_.spare.cvt32(), (1u << tail_lanes_) - 1);
  g_->kmovw(registers_.tail, registers_.spare.cvt32());
}

void VectorConversion::ZeroTail(const Xbyak::Xmm& value) {
  g_->vandps(value, value, tail_table_.Only(g_));
}

void VectorConversion::Broadcast(const Xbyak::Xmm& to, uint32_t bits) {
  unit_.BroadcastBits(g_, to, bits, registers_.spare);
}

void VectorConversion::Load(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from,
                            bool tail) {
  if (IsHalf(type)) return LoadHalves(type, to, from, tail);
  if (IsByte(type)) {
    LoadBytes(type, to, from, tail);
  } else if (IsSplit(tail)) {
    g_->vmovups(to, tail_table_.Only(g_));
    g_->vmaskmovps(to, to, g_->ptr[from]);
  } else {
    g_->vmovups(MaskedIf(tail, to), g_->ptr[from]);
  }
  if (type != DataType::kF32) g_->vcvtdq2ps(to, to);
}

void VectorConversion::LoadBytes(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from,
                                 bool tail) {
  const bool is_signed = type == DataType::kS8;
  if (IsSplit(tail)) {
    g_->vpxor(Low(to), Low(to), Low(to));
    for (int i = 0; i < tail_lanes_; ++i) g_->vpinsrb(Low(to), Low(to), g_->ptr[from + i], i);
    return is_signed ? g_->vpmovsxbd(to, Low(to)) : g_->vpmovzxbd(to, Low(to));
  }
  const Xbyak::Xmm masked = MaskedIf(tail, to);
  if (is_signed) {
    g_->vpmovsxbd(masked, g_->ptr[from]);
  } else {
    g_->vpmovzxbd(masked, g_->ptr[from]);
  }
}

void VectorConversion::LoadHalves(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from,
                                  bool tail) {
  const bool is_f16 = type == DataType::kF16;
  if (IsSplit(tail)) {
    g_->vpxor(Low(to), Low(to), Low(to));
    for (int i = 0; i < tail_lanes_; ++i) g_->vpinsrw(Low(to), Low(to), g_->ptr[from + 2 * i], i);
    is_f16 ? g_->vcvtph2ps(to, Low(to)) : g_->vpmovzxwd(to, Low(to));
  } else {
    const Xbyak::Xmm masked = MaskedIf(tail, to);
    is_f16 ? g_->vcvtph2ps(masked, g_->ptr[from]) : g_->vpmovzxwd(masked, g_->ptr[from]);
  }
  if (!is_f16) g_->vpslld(to, to, 16);
}

void VectorConversion::BeginStores(DataType type) {
  if (type == DataType::kF32 || type == DataType::kF16) return;
  if (type == DataType::kBf16) return Broadcast(Scratch(0), 0x7FFF);
  Broadcast(Scratch(0), std::bit_cast<uint32_t>(UpperBound(type)));
  if (!unit_.has_masks()) return;
  if (type == DataType::kS32) {
    g_->vpternlogd(Scratch(1), Scratch(1), Scratch(1), 0xFF);  // ones
  } else if (IsByte(type)) {
    g_->vpxord(Scratch(1), Scratch(1), Scratch(1));
    if (!StoresFour()) return;
    g_->vmovups(Scratch(2), g_->ptr[g_->rip + order_table_]);
    needs_order_ = true;
  }
}

// vcvtps2dq gives -2^31 for what does not fit and for NaN. That is right for values that are too
// small, and for NaN when the type is u8, where it becomes 0. vminps gives its second operand for
// NaN.
void VectorConversion::Round(DataType type, const Xbyak::Xmm& value) {
  const bool zeroes_nan = type != DataType::kU8;
  if (type != DataType::kS32) g_->vminps(value, Scratch(0), value);
  if (unit_.has_masks()) {
    if (zeroes_nan) g_->vcmpps(registers_.mask, value, value, kOrdered);
    const Xbyak::Xmm to = zeroes_nan ? value | registers_.mask | Xbyak::util::T_z : value;
    if (type != DataType::kS32) return g_->vcvtps2dq(to, value);
    // Values that are too large become ~(-2^31).
    const Xbyak::Xmm spare = Scratch(2);
    g_->vmovaps(spare, value);
    g_->vcvtps2dq(to, value);
    g_->vcmpps(registers_.mask, spare, Scratch(0), kAtLeast);
    return g_->vpxord(value | registers_.mask, value, Scratch(1));
  }
  const Xbyak::Xmm spare = Scratch(1);
  if (zeroes_nan) {
    g_->vcmpps(spare, value, value, kOrdered);
    g_->vandps(value, value, spare);
  }
  if (type == DataType::kS32) g_->vcmpps(spare, value, Scratch(0), kAtLeast);
  g_->vcvtps2dq(value, value);
  if (type == DataType::kS32) g_->vpxor(value, value, spare);
}

void VectorConversion::Store(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to,
                             bool tail) {
  if (IsHalf(type)) return StoreHalves(type, value, to, tail);
  if (type != DataType::kF32) Round(type, value);
  if (IsByte(type)) return StoreBytes(type, value, to, tail);
  StoreDwords(value, to, tail);
}

// Adds half of the last bit that stays, less one where that bit is even. A NaN is made quiet
// instead.
Xbyak::Xmm VectorConversion::RoundToBf16(const Xbyak::Xmm& value) {
  const Xbyak::Xmm rounded = Scratch(1), nan = Scratch(2);
  g_->vpslld(rounded, value, 15);
  g_->vpsrld(rounded, rounded, 31);
  g_->vpaddd(rounded, rounded, value);
  g_->vpaddd(rounded, rounded, Scratch(0));
  if (unit_.has_masks()) {
    g_->vcmpps(registers_.mask, value, value, kUnordered);
    g_->vaddps(rounded | registers_.mask, value, value);
  } else {
    g_->vcmpps(nan, value, value, kUnordered);
    g_->vaddps(value, value, value);
    g_->vblendvps(rounded, rounded, value, nan);
  }
  g_->vpsrld(rounded, rounded, 16);
  return rounded;
}

void VectorConversion::StoreHalves(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to,
                                   bool tail) {
  constexpr int kToNearestEven = 0;
  if (type == DataType::kF16) {
    if (unit_.has_masks()) {
      return g_->vcvtps2ph(MaskedIf(tail, g_->ptr[to]), value, kToNearestEven);
    }
    g_->vcvtps2ph(Low(value), value, kToNearestEven);
    return StoreWords(Low(value), to, tail);
  }
  const Xbyak::Xmm rounded = RoundToBf16(value);
  if (unit_.has_masks()) return g_->vpmovdw(MaskedIf(tail, g_->ptr[to]), rounded);
  g_->vextracti128(Low(Scratch(2)), Half(rounded), 1);
  g_->vpackusdw(Low(rounded), Low(rounded), Low(Scratch(2)));
  StoreWords(Low(rounded), to, tail);
}

void VectorConversion::StoreWords(const Xbyak::Xmm& low, const Xbyak::RegExp& to, bool tail) {
  if (!tail) return g_->vmovups(g_->ptr[to], low);
  for (int i = 0; i < tail_lanes_; ++i) g_->vpextrw(g_->ptr[to + 2 * i], low, i);
}

void VectorConversion::StoreDwords(const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail) {
  if (!IsSplit(tail)) return g_->vmovups(MaskedIf(tail, g_->ptr[to]), value);
  const Xbyak::Xmm mask = Scratch(2);
  g_->vmovups(mask, tail_table_.Only(g_));
  g_->vmaskmovps(g_->ptr[to], mask, value);
}

void VectorConversion::StoreBytes(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to,
                                  bool tail) {
  const bool is_unsigned = type == DataType::kU8;
  if (unit_.has_masks()) {
    const Xbyak::Address at = MaskedIf(tail, g_->ptr[to]);
    if (!is_unsigned) return g_->vpmovsdb(at, value);
    g_->vpmaxsd(value, value, Scratch(1));  // vpmovusdb would read negative numbers as large ones
    return g_->vpmovusdb(at, value);
  }
  const Xbyak::Xmm low = Low(value), high = Low(Scratch(1));
  g_->vextracti128(high, Half(value), 1);
  g_->vpackssdw(low, low, high);
  if (is_unsigned) {
    g_->vpackuswb(low, low, low);
  } else {
    g_->vpacksswb(low, low, low);
  }
  if (!tail) return g_->vmovq(g_->ptr[to], low);
  for (int i = 0; i < tail_lanes_; ++i) g_->vpextrb(g_->ptr[to + i], low, i);
}

void VectorConversion::StoreFour(DataType type, const Xbyak::Xmm (&values)[4],
                                 const Xbyak::RegExp& to) {
  for (const Xbyak::Xmm& value : values) Round(type, value);
  g_->vpackssdw(values[0], values[0], values[1]);
  g_->vpackssdw(values[2], values[2], values[3]);
  if (type == DataType::kU8) {
    g_->vpackuswb(values[0], values[0], values[2]);
  } else {
    g_->vpacksswb(values[0], values[0], values[2]);
  }
  // Now each quarter holds four elements of every vector.
  const Xbyak::Zmm packed(values[0].getIdx());
  g_->vpermd(packed, Xbyak::Zmm(registers_.scratch[2]), packed);
  g_->vmovups(g_->ptr[to], values[0]);
}

void VectorConversion::EmitTable() {
  g_->align(64);
  tail_table_.EmitOnly(g_, unit_, tail_lanes_);
  g_->L(order_table_);
  for (int i = 0; needs_order_ && i < 16; ++i) g_->dd(i % 4 * 4 + i / 4);
}

}  // namespace tilewire
