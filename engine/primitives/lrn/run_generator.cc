// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/run_generator.h"

#include <cstddef>

namespace tilewire::lrn {

void RunGenerator::Emit() {
  mov(src_, ptr[rdi + offsetof(RunArgs, src)]);
  mov(dst_, ptr[rdi + offsetof(RunArgs, dst)]);
  mov(taps_end_, ptr[rdi + offsetof(RunArgs, taps_end)]);
  mov(left_, ptr[rdi + offsetof(RunArgs, count)]);
  const int lanes = vector_bytes() / 4;
  normalizer_.LoadTable();
  for (int vectors : {kUnroll, 1}) {
    Xbyak::Label step, done;
    L(step);
    cmp(left_, vectors * lanes);
    jl(done, T_NEAR);
    EmitVectors(vectors, /*masked=*/false);
    add(src_, vectors * vector_bytes());
    add(dst_, vectors * vector_bytes());
    sub(left_, vectors * lanes);
    jmp(step, T_NEAR);
    L(done);
  }
  Xbyak::Label end;
  test(left_, left_);
  jz(end, T_NEAR);
  LoadMask();
  EmitVectors(1, /*masked=*/true);
  L(end);
  vzeroupper();
  ret();
  normalizer_.EmitTable();
  if (is_avx512()) return;
  align(32);
  L(lane_table_);
  for (int i = 0; i < 16; ++i) dd(i < 8 ? 0xFFFFFFFF : 0);
}

// The lowest left_ lanes, 1 <= left_ < a vector's.
void RunGenerator::LoadMask() {
  if (is_avx512()) {
    mov(r11d, 0xFFFF);
    bzhi(r11d, r11d, left_.cvt32());
    kmovw(mask_, r11d);
    return;
  }
  lea(r11, ptr[rip + lane_table_]);
  lea(r11, ptr[r11 + 32]);
  shl(left_, 2);
  sub(r11, left_);
  vmovups(lanes_, ptr[r11]);
}

void RunGenerator::Load(const Xbyak::Xmm& to, const Xbyak::Address& from, bool masked) {
  if (!masked) {
    vmovups(to, from);
  } else if (is_avx512()) {
    vmovups(to | mask_ | T_z, from);
  } else {
    vmaskmovps(to, lanes_, from);
  }
}

void RunGenerator::EmitVectors(int count, bool masked) {
  for (int i = 0; i < count; ++i) vxorps(Vector(i), Vector(i), Vector(i));
  Xbyak::Label next;
  mov(tap_, ptr[rdi + offsetof(RunArgs, taps)]);
  L(next);
  mov(at_, ptr[tap_]);
  add(at_, src_);
  for (int i = 0; i < count; ++i) {
    Load(value_, ptr[at_ + i * vector_bytes()], masked);
    vfmadd231ps(Vector(i), value_, value_);
  }
  add(tap_, 8);
  cmp(tap_, taps_end_);
  jne(next, T_NEAR);
  for (int i = 0; i < count; ++i) {
    Load(value_, ptr[src_ + i * vector_bytes()], masked);
    normalizer_.Apply(Vector(i), value_);
    const Xbyak::Address to = ptr[dst_ + i * vector_bytes()];
    if (!masked) {
      vmovups(to, Vector(i));
    } else if (is_avx512()) {
      vmovups(to | mask_, Vector(i));
    } else {
      vmaskmovps(to, lanes_, Vector(i));
    }
  }
}

}  // namespace tilewire::lrn
