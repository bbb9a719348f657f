// SPDX-License-Identifier: Apache-2.0
//
// Emits loads and stores of neighbouring elements of any type but halves, one per lane, where lanes
// have 4 or 8 bytes. Integers keep their value in the register: they are extended when they are
// loaded, and stores cut them to their type (modulo 2^bits). f32 beside lanes of 8 bytes takes half
// a register. Used while generating; thread-compatible.
#ifndef ENGINE_KERNELS_ELEMENTS_ELEMENT_LANES_H_
#define ENGINE_KERNELS_ELEMENTS_ELEMENT_LANES_H_

#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"
#include "engine/memory/data_type.h"
#include "xbyak/xbyak.h"

namespace tilewire {

class ElementLanes {
 public:
  // The lanes that an access touches: all, those that SetTail() names, or the first lane alone.
  enum class Part { kWhole, kTail, kOne };

  struct Registers {
    jit::TailMask::Registers tail;  // `spare` is overwritten by SetTail() and accesses
    int scratch;                    // a vector that stores overwrite
  };

  ElementLanes(Xbyak::CodeGenerator* generator, const VectorUnit& unit, int lane_bytes,
               const Registers& registers);

  // Elements of the widest type, 4 or 8 bytes, decide.
  static int LaneBytes(DataType type) { return SizeOf(type) == 8 ? 8 : 4; }
  // Whether an integer type has negative numbers, and is extended by their sign.
  static bool IsSigned(DataType type) {
    return type == DataType::kS8 || type == DataType::kS16 || type == DataType::kS32 ||
           type == DataType::kS64;
  }
  // Whether the unit masks accesses to elements of the type; else Part::kTail is not for them.
  static bool Masks(const VectorUnit& unit, int lane_bytes, DataType type) {
    return unit.has_masks() || (lane_bytes == 4 && SizeOf(type) == 4);
  }

  int count() const { return unit_.bytes() / lane_bytes_; }  // lanes
  // `count` is overwritten where the unit has no masks.
  void SetTail(const Xbyak::Reg64& count) { tail_.Set(count); }

  void Load(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from, Part part);
  void Broadcast(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from);
  // Overwrites `value`. All stores are of one type.
  void Store(DataType type, const Xbyak::Xmm& value, const Xbyak::RegExp& to, Part part);
  void EmitTable();  // after the last ret

  // The part of the register that holds f32: all of it, or its lower half beside lanes of 8 bytes.
  Xbyak::Xmm Reals(const Xbyak::Xmm& v) const;

 private:
  // Whether elements lie in memory as in the register.
  bool IsMoved(DataType type) const;
  Xbyak::Xmm Moved(DataType type, const Xbyak::Xmm& v) const;
  void LoadOne(DataType type, const Xbyak::Xmm& to, const Xbyak::RegExp& from);
  void LoadSpare(DataType type, const Xbyak::RegExp& from);  // extended
  void Extend(DataType type, const Xbyak::Xmm& to, const Xbyak::Address& from);
  void StoreOne(DataType type, const Xbyak::Xmm& low, const Xbyak::RegExp& to);
  void Cut(DataType type, const Xbyak::Xmm& value, const Xbyak::Address& to);
  void CutByShuffle(DataType type, const Xbyak::Xmm& value, const Xbyak::Address& to);

  Xbyak::CodeGenerator* const g_;
  const VectorUnit unit_;
  const int lane_bytes_;
  const Registers registers_;
  jit::TailMask tail_;
  int cut_bytes_ = 0;   // of the elements that order_ is for; 0: it is not used
  Xbyak::Label order_;  // gathers the low bytes of lanes, without masks
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTS_ELEMENT_LANES_H_
