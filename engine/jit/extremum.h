// SPDX-License-Identifier: Apache-2.0
//
// Emits the maximum and the minimum of two vectors of f32, with NaN where either is NaN. The
// instructions alone give their second source there.
#ifndef ENGINE_JIT_EXTREMUM_H_
#define ENGINE_JIT_EXTREMUM_H_

#include "engine/jit/vector_unit.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

inline constexpr int kOrderedPredicate = 7;  // of vcmpps: neither operand is NaN

// held = max(held, other), as pooling takes the elements of a window one after the other: a NaN
// that is held stays, and so does the last of two zeros (without masks: the negative one). Where
// the unit has masks `mask` is overwritten; where it has none, `other` is a register, and it and
// `spare` are overwritten.
inline void EmitRunningMaximum(Xbyak::CodeGenerator* generator, const VectorUnit& unit,
                               const Xbyak::Xmm& held, const Xbyak::Operand& other,
                               const Xbyak::Xmm& spare, const Xbyak::Opmask& mask) {
  if (unit.has_masks()) {
    // vmaxps gives its second source when either is NaN, so a plain maximum would forget a NaN.
    generator->vcmpps(mask, held, held, kOrderedPredicate);
    generator->vmaxps(held | mask, held, other);
    return;
  }
  // Either order alone loses one of the two NaNs; without a NaN both give the same number.
  const Xbyak::Xmm loaded = static_cast<const Xbyak::Xmm&>(other);
  generator->vmaxps(spare, held, loaded);
  generator->vmaxps(loaded, loaded, held);
  generator->vorps(held, spare, loaded);
}

// value = the maximum or the minimum of value and other. Overwrites `spare0`, and `mask` where the
// unit has masks, else `spare1`.
inline void EmitExtremum(Xbyak::CodeGenerator* generator, const VectorUnit& unit, bool is_max,
                         const Xbyak::Xmm& value, const Xbyak::Xmm& other, const Xbyak::Xmm& spare0,
                         const Xbyak::Xmm& spare1, const Xbyak::Opmask& mask) {
  if (is_max) {
    generator->vmaxps(spare0, value, other);
  } else {
    generator->vminps(spare0, value, other);
  }
  // Where value is NaN it stays.
  if (unit.has_masks()) {
    generator->vcmpps(mask, value, value, kOrderedPredicate);
    generator->vmovaps(value | mask, spare0);
  } else {
    generator->vcmpps(spare1, value, value, kOrderedPredicate);
    generator->vblendvps(value, value, spare0, spare1);
  }
}

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_EXTREMUM_H_
