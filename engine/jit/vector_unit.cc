// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/vector_unit.h"

#include <bit>
#include <numeric>

#include "engine/base/check.h"

namespace tilewire::jit {

VectorUnit VectorUnit::Of(cpu::Isa isa) {
  if (isa.Includes(cpu::Isa::kAvx512Vnni)) return {64, 32, kMasks | kDotProducts};
  if (isa.Includes(cpu::Isa::kAvx512)) return {64, 32, kMasks};
  if (isa.Includes(cpu::Isa::kAvx2Vnni)) return {32, 16, kDotProducts};
  return {32, 16, 0};
}

Xbyak::Xmm VectorUnit::Vector(int index) const {
  TILEWIRE_CHECK(index >= 0 && index < registers_, "a register that the unit has");
  if (bytes_ == 64) return Xbyak::Zmm(index);
  if (bytes_ == 32) return Xbyak::Ymm(index);
  return Xbyak::Xmm(index);
}

Xbyak::Ymm VectorUnit::Wide(int index) const {
  TILEWIRE_CHECK(index >= 0 && index < registers_, "a register that the unit has");
  if (bytes_ == 64) return Xbyak::Zmm(index);
  return Xbyak::Ymm(index);
}

std::vector<int> VectorUnit::RegistersFrom(int first) const {
  TILEWIRE_CHECK(first >= 0 && first <= registers_, "a register that the unit has");
  std::vector<int> numbers(registers_ - first);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void VectorUnit::Zero(Xbyak::CodeGenerator* g, const Xbyak::Xmm& v) const {
  has_masks() ? g->vpxord(v, v, v) : g->vxorps(v, v, v);
}

// The integer forms have an embedded broadcast and, unlike vandps and vorps on 512 bits, need no
// AVX512DQ.
void VectorUnit::And(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, const Xbyak::Xmm& a,
                     const Xbyak::Operand& b) const {
  has_masks() ? g->vpandd(to, a, b) : g->vandps(to, a, b);
}

void VectorUnit::Or(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, const Xbyak::Xmm& a,
                    const Xbyak::Operand& b) const {
  has_masks() ? g->vpord(to, a, b) : g->vorps(to, a, b);
}

void VectorUnit::Round(Xbyak::CodeGenerator* g, const Xbyak::Xmm& v, int control) const {
  has_masks() ? g->vrndscaleps(v, v, control) : g->vroundps(v, v, control);
}

void VectorUnit::Broadcast(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, float value,
                           const Xbyak::Reg64& spare) const {
  const Xbyak::Xmm low(to.getIdx());
  g->mov(spare.cvt32(), std::bit_cast<uint32_t>(value));
  g->vmovd(low, spare.cvt32());
  g->vbroadcastss(to, low);
}

void VectorUnit::BroadcastBits(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, uint32_t bits,
                               const Xbyak::Reg64& spare) const {
  g->mov(spare.cvt32(), bits);
  if (has_masks()) return g->vpbroadcastd(to, spare.cvt32());
  const Xbyak::Xmm low(to.getIdx());
  g->vmovd(low, spare.cvt32());
  g->vpbroadcastd(to, low);
}

void VectorUnit::TakeWhereNegative(Xbyak::CodeGenerator* g, const Xbyak::Xmm& v,
                                   const Xbyak::Xmm& sign, const Xbyak::Xmm& negative,
                                   const Xbyak::Opmask& mask) const {
  if (has_masks()) {
    g->vpmovd2m(mask, sign);
    g->vmovaps(v | mask, negative);
  } else {
    g->vblendvps(v, v, negative, sign);
  }
}

void VectorUnit::AddDotProducts(Xbyak::CodeGenerator* g, const Xbyak::Xmm& sums,
                                const Xbyak::Xmm& unsigned_bytes,
                                const Xbyak::Operand& signed_bytes) const {
  g->vpdpbusd(sums, unsigned_bytes, signed_bytes, Encoding());
}

void VectorUnit::AddWordProducts(Xbyak::CodeGenerator* g, const Xbyak::Xmm& sums,
                                 const Xbyak::Xmm& a, const Xbyak::Operand& b) const {
  g->vpdpwssd(sums, a, b, Encoding());
}

// A gather clears the mask bit of each element that it has loaded, so that the mask is set anew.
void VectorUnit::Gather(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, const Xbyak::Reg64& base,
                        const Xbyak::Xmm& index, int scale, int displacement,
                        const Xbyak::Opmask& mask, int mask_vector) const {
  const Xbyak::Address from = g->ptr[base + index * scale + displacement];
  if (has_masks()) {
    g->kxnorw(mask, mask, mask);
    g->vgatherdps(to | mask, from);
  } else {
    const Xbyak::Xmm all = Vector(mask_vector);
    g->vpcmpeqd(all, all, all);
    g->vgatherdps(to, from, all);
  }
}

}  // namespace tilewire::jit
