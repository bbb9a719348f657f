// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/run_generator.h"

#include <cstddef>

#include "engine/kernels/products/counted_loop.h"

namespace tilewire::lrn {

void RunGenerator::Emit() {
  mov(src_, ptr[rdi + offsetof(RunArgs, src)]);
  mov(dst_, ptr[rdi + offsetof(RunArgs, dst)]);
  mov(taps_end_, ptr[rdi + offsetof(RunArgs, taps_end)]);
  mov(left_, ptr[rdi + offsetof(RunArgs, count)]);
  const int lanes = unit_.lanes();
  normalizer_.LoadTable();
  for (int vectors : {kUnroll, 1}) {
    EmitWhileLeft(this, left_, vectors * lanes, [&] {
      EmitVectors(vectors, /*masked=*/false);
      add(src_, vectors * vector_bytes());
      add(dst_, vectors * vector_bytes());
    });
  }
  EmitIfLeft(this, left_, [&] {
    tail_.Set(left_);
    EmitVectors(1, /*masked=*/true);
  });
  vzeroupper();
  ret();
  normalizer_.EmitTable();
  tail_.EmitTable();
}

void RunGenerator::EmitVectors(int count, bool masked) {
  for (int i = 0; i < count; ++i) vxorps(Vector(i), Vector(i), Vector(i));
  Xbyak::Label next;
  mov(tap_, ptr[rdi + offsetof(RunArgs, taps)]);
  L(next);
  mov(at_, ptr[tap_]);
  add(at_, src_);
  for (int i = 0; i < count; ++i) {
    tail_.Load(value_, ptr[at_ + i * vector_bytes()], masked);
    vfmadd231ps(Vector(i), value_, value_);
  }
  add(tap_, 8);
  cmp(tap_, taps_end_);
  jne(next, T_NEAR);
  for (int i = 0; i < count; ++i) {
    tail_.Load(value_, ptr[src_ + i * vector_bytes()], masked);
    normalizer_.Apply(Vector(i), value_);
    tail_.Store(ptr[dst_ + i * vector_bytes()], Vector(i), masked);
  }
}

}  // namespace tilewire::lrn
