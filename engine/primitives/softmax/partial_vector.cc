// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/softmax/partial_vector.h"

namespace tilewire::softmax {

void PartialVector::Prepare() {
  if (avx512_) {
    generator_->mov(registers_.spare.cvt32(), (1u << count_) - 1);
    generator_->kmovw(registers_.lanes, registers_.spare.cvt32());
  } else {
    generator_->vmovups(Mask(), generator_->ptr[generator_->rip + table_]);
  }
}

void PartialVector::Load(const Xbyak::Xmm& vector, const Xbyak::Address& from) {
  if (avx512_) {
    generator_->vmovups(vector | registers_.lanes | Xbyak::util::T_z, from);
  } else {
    generator_->vmaskmovps(vector, Mask(), from);
  }
}

void PartialVector::Store(const Xbyak::Address& to, const Xbyak::Xmm& vector) {
  if (avx512_) {
    generator_->vmovups(to | registers_.lanes, vector);
  } else {
    generator_->vmaskmovps(to, Mask(), vector);
  }
}

void PartialVector::Replace(const Xbyak::Xmm& vector, const Xbyak::Xmm& other) {
  if (avx512_) {
    generator_->vblendmps(vector | registers_.lanes, other, vector);
  } else {
    generator_->vblendvps(vector, other, vector, Mask());
  }
}

void PartialVector::EmitTable() {
  if (avx512_) return;
  generator_->align(32);
  generator_->L(table_);
  for (int lane = 0; lane < 8; ++lane) generator_->dd(lane < count_ ? 0xFFFFFFFFu : 0u);
}

}  // namespace tilewire::softmax
