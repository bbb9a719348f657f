// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/pooling/tap_generator.h"

#include <cstddef>

#include "engine/jit/extremum.h"

namespace tilewire::pooling {
namespace {

constexpr int kResult = 0, kValue = 1, kSpare = 2, kSteps = 3, kMask = 4;  // vector registers

}  // namespace

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
  add(windows_, shape_.unit.bytes());
  add(row_, static_cast<uint32_t>(shape_.unit.lanes() * shape_.stride * 4));
  dec(left_);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
  align(64);
  L(steps_);
  for (int lane = 0; lane < shape_.unit.lanes(); ++lane)
    dd(static_cast<uint32_t>(lane * shape_.stride));
}

// Loads neighbours, or every stride-th element.
void TapGenerator::EmitLoad(int64_t tap) {
  const int displacement = static_cast<int>(tap * 4);
  if (shape_.stride == 1) {
    vmovups(Vector(kValue), ptr[row_ + displacement]);
  } else {
    shape_.unit.Gather(this, Vector(kValue), row_, Vector(kSteps), /*scale=*/4, displacement,
                       gathered_, kMask);
  }
}

void TapGenerator::EmitCombine() {
  const Xbyak::Xmm result = Vector(kResult), value = Vector(kValue), spare = Vector(kSpare);
  if (!shape_.is_max) {
    shape_.is_float ? vaddps(result, result, value) : vpaddd(result, result, value);
  } else if (!shape_.is_float) {
    vpmaxsd(result, result, value);
  } else {
    jit::EmitRunningMaximum(this, shape_.unit, result, value, spare, ordered_);
  }
}

}  // namespace tilewire::pooling
