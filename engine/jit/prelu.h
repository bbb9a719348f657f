// SPDX-License-Identifier: Apache-2.0
//
// Emits value < 0 ? value * slope : value for two vectors of f32; NaN stays NaN.
#ifndef ENGINE_JIT_PRELU_H_
#define ENGINE_JIT_PRELU_H_

#include "engine/jit/vector_unit.h"
#include "xbyak/xbyak.h"

namespace tilewire::jit {

// Overwrites `spare0`, and `mask` where the unit has masks, else `spare1`.
inline void EmitPRelu(Xbyak::CodeGenerator* generator, const VectorUnit& unit,
                      const Xbyak::Xmm& value, const Xbyak::Xmm& slope, const Xbyak::Xmm& spare0,
                      const Xbyak::Xmm& spare1, const Xbyak::Opmask& mask) {
  constexpr int kLess = 1;  // of vcmpps
  generator->vxorps(spare0, spare0, spare0);
  if (unit.has_masks()) {
    generator->vcmpps(mask, value, spare0, kLess);
    generator->vmulps(value | mask, value, slope);
    return;
  }
  generator->vcmpps(spare0, value, spare0, kLess);
  generator->vmulps(spare1, value, slope);
  generator->vblendvps(value, value, spare1, spare0);
}

}  // namespace tilewire::jit

#endif  // ENGINE_JIT_PRELU_H_
