// SPDX-License-Identifier: Apache-2.0
//
// Emits the maximum and the minimum of two vectors, NaN where either is NaN: the instructions alone
// give their second source there.
#ifndef ENGINE_JIT_EXTREMUM_H_
#define ENGINE_JIT_EXTREMUM_H_

#include "engine/cpu/isa.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

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
