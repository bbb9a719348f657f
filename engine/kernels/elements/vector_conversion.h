// SPDX-License-Identifier: Apache-2.0
//
// Emits loads and stores of neighbouring elements of any type, as many as a vector has lanes, which
// are f32 in the register. It does what element_conversion.h does for one element, with the same
// results: integers are rounded to nearest even and saturated, and NaN becomes 0; halves are
// rounded to nearest even. An access marked `tail` touches the first `tail_lanes` elements only.
// Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_ELEMENTS_VECTOR_CONVERSION_H_
#define ENGINE_KERNELS_ELEMENTS_VECTOR_CONVERSION_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"
#include "engine/memory/data_type.h"
#include "xbyak/xbyak.h"

namespace tilewire {

class VectorConversion {
 public:
  static constexpr int kScratchCount = 3;

  struct Registers {
    Xbyak::Reg64 spare;        // overwritten
    std::vector<int> scratch;  // vector registers that are overwritten, kScratchCount at least
    // Where the unit has masks: LoadTailMask() sets `tail`; `mask` is overwritten.
    Xbyak::Opmask tail, mask;
  };

  VectorConversion(Xbyak::CodeGenerator* generator, const VectorUnit& unit, int tail_lanes,
                   Registers registers)
      : g_(generator), unit_(unit), tail_lanes_(tail_lanes), registers_(std::move(registers)) {}

  void LoadTailMask();                     // before the first access to a tail
  void ZeroTail(const Xbyak::Xmm& value);  // zeroes the lanes from `tail_lanes` on
  void Load(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from, bool tail);

  // Loads constants for the stores of one type into the scratch registers, which nothing else may
  // use before the last store.
  void BeginStores(DataType type);
  void Store(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail);
  // Stores four vectors of bytes whose 64 elements lie side by side. Only where StoresFour().
  bool StoresFour() const { return unit_.has_masks() && unit_.lanes() == 16; }
  void StoreFour(DataType type, const Xbyak::Xmm (&values)[4], const Xbyak::RegExp& to);

  void EmitTable();  // after the last ret

  // The value in every lane.
  void Broadcast(const Xbyak::Xmm& to, uint32_t bits);

 private:
  Xbyak::Xmm Scratch(int i) const { return unit_.Vector(registers_.scratch[i]); }
  // The elements of a tail that an instruction without masks cannot load or store at once.
  bool IsSplit(bool tail) const { return tail && !unit_.has_masks(); }
  Xbyak::Xmm MaskedIf(bool tail, const Xbyak::Xmm& to) const;
  Xbyak::Address MaskedIf(bool tail, const Xbyak::Address& to) const;
  // f32 to s32 that saturates to `type` when it is packed.
  void Round(DataType type, const Xbyak::Xmm& value);
  void LoadBytes(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from, bool tail);
  void StoreBytes(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail);
  void LoadHalves(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from, bool tail);
  void StoreHalves(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail);
  void StoreWords(const Xbyak::Xmm& low, const Xbyak::RegExp& to, bool tail);  // of an xmm
  Xbyak::Xmm RoundToBf16(const Xbyak::Xmm& value);  // to the low halves of lanes, in scratch
  void StoreDwords(const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail);

  Xbyak::CodeGenerator* const g_;
  const VectorUnit unit_;
  const int tail_lanes_;
  const Registers registers_;
  bool needs_order_ = false;
  jit::MaskTable tail_table_;
  Xbyak::Label order_table_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTS_VECTOR_CONVERSION_H_
