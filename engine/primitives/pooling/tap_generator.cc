// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/pooling/tap_generator.h"

#include <cstddef>

#include "engine/jit/extremum.h"

namespace tilewire::pooling {
namespace {

constexpr int kResult = 0, kValue = 1, kSpare = 2, kSteps = 3, kMask = 4;  // vector registers

}  // namespace

Xbyak::Xmm TapGenerator::Vector(int index) const {
  if (shape_.lanes == 16) return Xbyak::Zmm(index);
  return Xbyak::Ymm(index);
}

void TapGenerator::Emit() {
  mov(row_, ptr[rdi + offsetof(TapArgs, row)]);
  mov(windows_, ptr[rdi + offsetof(TapArgs, windows)]);
  mov(left_, ptr[rdi + offsetof(TapArgs, vectors)]);
  vmovups(Vector(kSteps), ptr[rip + steps_]);
  Xbyak::Label next;
  L(next);
  vmovups(Vector(kResult), ptr[windows_]);
  for (int64_t tap = 0; tap < shape_.kernel; ++tap) {
    EmitLoad(tap);
    EmitCombine();
  }
  vmovups(ptr[windows_], Vector(kResult));
  add(windows_, shape_.lanes * 4);
  add(row_, static_cast<uint32_t>(shape_.lanes * shape_.stride * 4));
  dec(left_);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
  align(64);
  L(steps_);
  for (int lane = 0; lane < shape_.lanes; ++lane) dd(static_cast<uint32_t>(lane * shape_.stride));
}

// Neighbours, or every stride-th element; a gather uses its mask up.
void TapGenerator::EmitLoad(int64_t tap) {
  const int displacement = static_cast<int>(tap * 4);
  if (shape_.stride == 1) {
    vmovups(Vector(kValue), ptr[row_ + displacement]);
  } else if (shape_.lanes == 16) {
    kxnorw(lanes_, lanes_, lanes_);
    vgatherdps(Xbyak::Zmm(kValue) | lanes_, ptr[row_ + Xbyak::Zmm(kSteps) * 4 + displacement]);
  } else {
    const Xbyak::Ymm mask(kMask);
    vpcmpeqd(mask, mask, mask);
    vgatherdps(Xbyak::Ymm(kValue), ptr[row_ + Xbyak::Ymm(kSteps) * 4 + displacement], mask);
  }
}

void TapGenerator::EmitCombine() {
  const Xbyak::Xmm result = Vector(kResult), value = Vector(kValue), spare = Vector(kSpare);
  if (!shape_.is_max) {
    shape_.is_float ? vaddps(result, result, value) : vpaddd(result, result, value);
  } else if (!shape_.is_float) {
    vpmaxsd(result, result, value);
  } else {
    const cpu::Isa isa = shape_.lanes == 16 ? cpu::Isa::kAvx512 : cpu::Isa::kAvx2;
    jit::EmitRunningMaximum(this, result, value, spare, ordered_, isa);
  }
}

}  // namespace tilewire::pooling
