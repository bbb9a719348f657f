// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/elements/lane_sums.h"

namespace tilewire {
namespace {

// spare = the even quarters of `a` and then of `b` (the lower halves where there are two), a = the
// odd ones.
void SplitQuarters(Xbyak::CodeGenerator* g, const VectorUnit& unit, const Xbyak::Xmm& a,
                   const Xbyak::Xmm& b, const Xbyak::Xmm& spare) {
  if (unit.bytes() == 64) {
    constexpr int kEven = 0x88, kOdd = 0xDD;
    const Xbyak::Zmm za(a.getIdx()), zb(b.getIdx());
    g->vshuff32x4(Xbyak::Zmm(spare.getIdx()), za, zb, kEven);
    g->vshuff32x4(za, za, zb, kOdd);
    return;
  }
  constexpr int kLower = 0x20, kUpper = 0x31;
  const Xbyak::Ymm ya(a.getIdx()), yb(b.getIdx());
  g->vperm2f128(Xbyak::Ymm(spare.getIdx()), ya, yb, kLower);
  g->vperm2f128(ya, ya, yb, kUpper);
}

}  // namespace

void EmitLaneSums(Xbyak::CodeGenerator* g, const VectorUnit& unit, const Xbyak::Xmm& spare) {
  for (int apart = 1; apart < unit.lanes(); apart *= 2) {
    for (int i = 0; i < unit.lanes(); i += 2 * apart) {
      const Xbyak::Xmm a = unit.Vector(i), b = unit.Vector(i + apart);
      if (apart == 1) {
        g->vunpcklps(spare, a, b);
        g->vunpckhps(a, a, b);
      } else if (apart == 2) {
        g->vunpcklpd(spare, a, b);
        g->vunpckhpd(a, a, b);
      } else {
        SplitQuarters(g, unit, a, b, spare);
      }
      g->vaddps(a, spare, a);
    }
  }
}

EpilogueConfig EpilogueOfLaneSums(const VectorUnit& unit, int pixels, const PostOps& post_ops) {
  EpilogueConfig config{.unit = unit, .post_ops = post_ops};
  config.tail_lanes = pixels % unit.lanes();
  config.packed_channels = true;
  return config;
}

}  // namespace tilewire
