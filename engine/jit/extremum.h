// SPDX-License-Identifier: Apache-2.0
//
// Emits the maximum and the minimum of two vectors, NaN where either is NaN: the instructions alone
// give their second source there.
#ifndef ENGINE_JIT_EXTREMUM_H_
#define ENGINE_JIT_EXTREMUM_H_

#include "engine/cpu/isa.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

// held = max(held, other) as pooling takes it, one element of a window after the other: a NaN that
// is held stays, and so does the last of two zeros (AVX2: the negative one). AVX2: `other` is a
// register; it and `spare` are overwritten. AVX-512: `mask` is.
inline void EmitRunningMaximum(Xbyak::CodeGenerator* generator, const Xbyak::Xmm& held,
                               const Xbyak::Operand& other, const Xbyak::Xmm& spare,
                               const Xbyak::Opmask& mask, cpu::Isa isa) {
  constexpr int kOrdered = 7;
  if (isa >= cpu::Isa::kAvx512) {
    // vmaxps gives its second source when either is NaN, so a plain maximum would forget a NaN.
    generator->vcmpps(mask, held, held, kOrdered);
    generator->vmaxps(held | mask, held, other);
    return;
  }
  // Either order alone loses one of the two NaNs; without a NaN both are the same number.
  const Xbyak::Xmm loaded = static_cast<const Xbyak::Xmm&>(other);
  generator->vmaxps(spare, held, loaded);
  generator->vmaxps(loaded, loaded, held);
  generator->vorps(held, spare, loaded);
}

// value = max or min of value and other. Overwrites both spares (AVX-512: the first) and, on
// AVX-512 only, `mask`.
inline void EmitExtremum(Xbyak::CodeGenerator* generator, bool is_max, const Xbyak::Xmm& value,
                         const Xbyak::Xmm& other, const Xbyak::Xmm& spare0,
                         const Xbyak::Xmm& spare1, const Xbyak::Opmask& mask, cpu::Isa isa) {
  constexpr int kOrdered = 7;
  if (is_max) {
    generator->vmaxps(spare0, value, other);
  } else {
    generator->vminps(spare0, value, other);
  }
  // Where value is NaN it stays.
  if (isa >= cpu::Isa::kAvx512) {
    generator->vcmpps(mask, value, value, kOrdered);
    generator->vmovaps(value | mask, spare0);
  } else {
    generator->vcmpps(spare1, value, value, kOrdered);
    generator->vblendvps(value, value, spare0, spare1);
  }
}

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_EXTREMUM_H_
