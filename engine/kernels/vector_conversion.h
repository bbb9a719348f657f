// SPDX-License-Identifier: Apache-2.0
//
// Emits loads and stores of 8 (ymm) or 16 (zmm) neighbouring elements of any type, which are f32
// in the register: what element_conversion.h does for one element, with the same results (integers
// rounded to nearest even, saturated, NaN to 0; halves rounded to nearest even). An access marked
// `tail` touches the first `tail_lanes` elements only. Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_VECTOR_CONVERSION_H_
#define ENGINE_KERNELS_VECTOR_CONVERSION_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/memory/data_type.h"
#include "xbyak/xbyak.h"

namespace tilewire {

class VectorConversion {
 public:
  static constexpr int kScratchCount = 3;

  struct Registers {
    Xbyak::Reg64 spare;        // overwritten
    std::vector<int> scratch;  // vector registers that are overwritten, kScratchCount at least
    Xbyak::Opmask tail, mask;  // AVX-512: LoadTailMask() sets the former, the latter is overwritten
  };

  VectorConversion(Xbyak::CodeGenerator* generator, int lanes, int tail_lanes, Registers registers)
      : g_(generator), lanes_(lanes), tail_lanes_(tail_lanes), registers_(std::move(registers)) {}

  void LoadTailMask();                     // before the first access to a tail
  void ZeroTail(const Xbyak::Xmm& value);  // the lanes from `tail_lanes` on
  void Load(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from, bool tail);

  // Constants for the stores of one type; nothing else may use the scratch registers before the
  // last store.
  void BeginStores(DataType type);
  void Store(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail);
  // Four vectors of bytes whose 64 elements lie side by side. AVX-512.
  void StoreFour(DataType type, const Xbyak::Xmm (&values)[4], const Xbyak::RegExp& to);

  void EmitTable();  // behind the last ret

  // The value in every lane.
  void Broadcast(const Xbyak::Xmm& to, uint32_t bits);

 private:
  Xbyak::Xmm Scratch(int i) const;
  // f32 to s32 that saturates to `type` when it is packed.
  void Round(DataType type, const Xbyak::Xmm& value);
  void LoadBytes(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from, bool tail);
  void StoreBytes(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail);
  void LoadHalves(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from, bool tail);
  void StoreHalves(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail);
  void StoreWords(const Xbyak::Xmm& low, const Xbyak::RegExp& to, bool tail);  // of an xmm: AVX2
  Xbyak::Xmm RoundToBf16(const Xbyak::Xmm& value);  // to the low halves of lanes, in scratch
  void StoreDwords(const Xbyak::Xmm& value, const Xbyak::RegExp& to, bool tail);

  Xbyak::CodeGenerator* const g_;
  const int lanes_, tail_lanes_;
  const Registers registers_;
  bool needs_order_ = false;
  Xbyak::Label tail_table_, order_table_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_VECTOR_CONVERSION_H_
