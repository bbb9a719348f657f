// SPDX-License-Identifier: Apache-2.0
//
// The vector registers of an instruction set, as a value: how wide they are, how many there are,
// and which of the instructions that differ between instruction sets they have. Every generator
// holds one, takes its registers from it, and leaves to it the few operations that are spelt
// differently from set to set:
//
//   const VectorUnit unit = VectorUnit::Of(cpu::Isa::kAvx512);
//   unit.Zero(generator, unit.Vector(3));     // vpxord zmm3, zmm3, zmm3; with AVX2 vxorps on ymm3
//
// Another width is another value: code asks for the width, the number of registers or a feature,
// and never takes one of them for another. 8 lanes with opmasks are a unit as well.
//
// An immutable value. The Emit functions are used while generating; thread-compatible.
#ifndef ENGINE_JIT_VECTOR_UNIT_H_
#define ENGINE_JIT_VECTOR_UNIT_H_

#include <cstdint>
#include <vector>

#include "engine/cpu/isa.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

class VectorUnit {
 public:
  enum Feature : uint32_t {
    // EVEX: opmask registers, results that merge or are zeroed under them, and memory operands
    // that are broadcast within the instruction.
    kMasks = 1 << 0,
    // VNNI: vpdpbusd and vpdpwssd add products to 32-bit sums.
    kDotProducts = 1 << 1,
  };

  // The widest vectors of an instruction set that includes AVX2.
  static VectorUnit Of(cpu::Isa isa);

  // `bytes` of a register: 8, 16, 32 or 64. Registers of 8 bytes are the lower halves of 16.
  constexpr VectorUnit(int bytes, int registers, uint32_t features)
      : bytes_(bytes), registers_(registers), features_(features) {}

  constexpr int bytes() const { return bytes_; }
  constexpr int lanes() const { return bytes_ / 4; }  // of 32 bits
  constexpr int registers() const { return registers_; }
  constexpr bool has_masks() const { return (features_ & kMasks) != 0; }
  constexpr bool has_dot_products() const { return (features_ & kDotProducts) != 0; }
  constexpr bool operator==(const VectorUnit&) const = default;

  // The same instructions on registers of another width.
  constexpr VectorUnit WithBytes(int bytes) const { return {bytes, registers_, features_}; }

  // Register `index` in the unit's width: it encodes as an xmm, ymm or zmm.
  Xbyak::Xmm Vector(int index) const;
  // The same for instructions that Xbyak declares for ymm and zmm only; `bytes` is 32 or 64.
  Xbyak::Ymm Wide(int index) const;
  // The numbers of the registers from `first` on.
  std::vector<int> RegistersFrom(int first) const;
  // A displacement of one byte reaches elements that are broadcast from -reach to almost +reach
  // bytes: EVEX counts it in elements.
  int BroadcastReach() const { return has_masks() ? 512 : 128; }

  // v = 0
  void Zero(Xbyak::CodeGenerator* g, const Xbyak::Xmm& v) const;
  // to = a & b and to = a | b, bit by bit; b may be in memory, with an embedded broadcast where the
  // unit has masks.
  void And(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, const Xbyak::Xmm& a,
           const Xbyak::Operand& b) const;
  void Or(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, const Xbyak::Xmm& a,
          const Xbyak::Operand& b) const;
  // v = v rounded to an integral f32; `control` as vroundps takes it (0: to nearest even, 1: down,
  // 2: up; + 8: no exception).
  void Round(Xbyak::CodeGenerator* g, const Xbyak::Xmm& v, int control) const;
  // to = the number in every lane; `spare` is overwritten.
  void Broadcast(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, float value,
                 const Xbyak::Reg64& spare) const;
  void BroadcastBits(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, uint32_t bits,
                     const Xbyak::Reg64& spare) const;
  // v = `negative` in the lanes where the sign bit of `sign` is set. Overwrites `mask` where the
  // unit has masks.
  void TakeWhereNegative(Xbyak::CodeGenerator* g, const Xbyak::Xmm& v, const Xbyak::Xmm& sign,
                         const Xbyak::Xmm& negative, const Xbyak::Opmask& mask) const;
  // Where the unit has dot products. sums += the four products of u8 and s8 in each lane, and sums
  // += the two products of s16 in each lane.
  void AddDotProducts(Xbyak::CodeGenerator* g, const Xbyak::Xmm& sums,
                      const Xbyak::Xmm& unsigned_bytes, const Xbyak::Operand& signed_bytes) const;
  void AddWordProducts(Xbyak::CodeGenerator* g, const Xbyak::Xmm& sums, const Xbyak::Xmm& a,
                       const Xbyak::Operand& b) const;
  // to = the 32-bit elements at base + scale * index + displacement. Overwrites `mask`, or vector
  // register `mask_vector` where the unit has no masks.
  void Gather(Xbyak::CodeGenerator* g, const Xbyak::Xmm& to, const Xbyak::Reg64& base,
              const Xbyak::Xmm& index, int scale, int displacement, const Xbyak::Opmask& mask,
              int mask_vector) const;
  // Combines all lanes of `v` in its lowest, halves onto each other: calls combine() after each
  // time that `half` has been set to v's lanes in swapped halves, to emit v = f(v, half).
  template <typename Combine>
  void FoldLanes(Xbyak::CodeGenerator* g, const Xbyak::Xmm& v, const Xbyak::Xmm& half,
                 Combine combine) const;

 private:
  // The encoding of instructions that exist in both.
  Xbyak::PreferredEncoding Encoding() const {
    return has_masks() ? Xbyak::EvexEncoding : Xbyak::VexEncoding;
  }

  int bytes_, registers_;
  uint32_t features_;
};

template <typename Combine>
void VectorUnit::FoldLanes(Xbyak::CodeGenerator* g, const Xbyak::Xmm& v, const Xbyak::Xmm& half,
                           Combine combine) const {
  constexpr int kSwapPairs = 0x4E, kSwapNeighbours = 0xB1;
  if (bytes_ == 64) {
    g->vshuff32x4(Xbyak::Zmm(half.getIdx()), Xbyak::Zmm(v.getIdx()), Xbyak::Zmm(v.getIdx()),
                  kSwapPairs);
    combine();
    g->vshuff32x4(Xbyak::Zmm(half.getIdx()), Xbyak::Zmm(v.getIdx()), Xbyak::Zmm(v.getIdx()),
                  kSwapNeighbours);
    combine();
  } else if (bytes_ == 32) {
    g->vperm2f128(Xbyak::Ymm(half.getIdx()), Xbyak::Ymm(v.getIdx()), Xbyak::Ymm(v.getIdx()), 1);
    combine();
  }
  for (int shuffle : {kSwapPairs, kSwapNeighbours}) {
    g->vshufps(half, v, v, shuffle);
    combine();
  }
}

}  // namespace tilewire::jit

namespace tilewire {
using jit::VectorUnit;
}  // namespace tilewire

#endif  // ENGINE_JIT_VECTOR_UNIT_H_
