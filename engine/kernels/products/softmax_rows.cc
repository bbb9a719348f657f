// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/softmax_rows.h"

#include <limits>

#include "engine/base/check.h"

namespace tilewire {

SoftmaxRows::SoftmaxRows(absl::string_view name, const VectorUnit& unit, int64_t size,
                         int64_t stride)
    : Generator(name),
      unit_(unit),
      lanes_(unit.lanes()),
      size_(size),
      stride_(stride),
      math_(this, unit, rax, k1),
      tail_(this, unit, {.spare = left_, .opmask = k2, .vector = 15}) {
  TILEWIRE_CHECK(size <= kLongestRow && stride <= kLongestRow, "rows within 32-bit displacements");
}

void SoftmaxRows::Emit() {
  Xbyak::Label row;
  math_.LoadTable();
  if (HasTail()) tail_.Set(static_cast<int>(size_ % lanes_));
  L(row);
  EmitMaximum();
  EmitExponentials();
  EmitScaling();
  add(src_, static_cast<int>(stride_ * 4));
  add(dst_, static_cast<int>(stride_ * 4));
  dec(rows_);
  jnz(row, T_NEAR);
  vzeroupper();
  ret();
  math_.EmitTable();
  if (HasTail()) tail_.EmitTable();
}

// Calls step(i, whole) for each vector of the row, which begins at at_ + i * VectorBytes().
void SoftmaxRows::Walk(absl::FunctionRef<void(int, bool)> step) {
  const int64_t vectors = size_ / lanes_;
  xor_(at_, at_);
  if (vectors >= kUnroll) {
    Xbyak::Label loop;
    mov(left_, vectors / kUnroll);
    L(loop);
    for (int i = 0; i < kUnroll; ++i) step(i, true);
    add(at_, kUnroll * VectorBytes());
    dec(left_);
    jnz(loop, T_NEAR);
  }
  const int rest = static_cast<int>(vectors % kUnroll);
  for (int i = 0; i < rest; ++i) step(i, true);
  if (HasTail()) step(rest, false);
}

void SoftmaxRows::Load(int i, const Xbyak::Reg64& row, bool whole) {
  tail_.Load(Value(i), ptr[row + at_ + i * VectorBytes()], /*masked=*/!whole);
}
void SoftmaxRows::Store(int i, bool whole) {
  tail_.Store(ptr[dst_ + at_ + i * VectorBytes()], Value(i), /*masked=*/!whole);
}

// vmaxps gives its second source when either is NaN. So NaN is passed over here, and comes back
// with its exponential.
void SoftmaxRows::EmitMaximum() {
  const Vector fill = unit_.Vector(kFill);
  math_.Load(fill, -std::numeric_limits<float>::infinity());
  for (int i = 0; i < kUnroll; ++i) vmovaps(Accumulator(i), fill);
  Walk([&](int i, bool whole) {
    Load(i, src_, whole);
    if (!whole) tail_.ReplaceOthers(Value(i), fill);
    vmaxps(Accumulator(i), Value(i), Accumulator(i));
  });
  Reduce([this](const Vector& a, const Vector& b) { vmaxps(a, b, a); });
  vmovaps(OfRow(), Accumulator(0));
}

void SoftmaxRows::EmitExponentials() {
  const Vector scratch0 = unit_.Vector(kScratch0), scratch1 = unit_.Vector(kScratch1);
  for (int i = 0; i < kUnroll; ++i) unit_.Zero(this, Accumulator(i));
  Walk([&](int i, bool whole) {
    Load(i, src_, whole);
    vsubps(Value(i), Value(i), OfRow());
    math_.Exp(Value(i), scratch0, scratch1);
    if (!whole) {
      unit_.Zero(this, scratch0);
      tail_.ReplaceOthers(Value(i), scratch0);
    }
    vaddps(Accumulator(i), Accumulator(i), Value(i));
    Store(i, whole);
  });
  Reduce([this](const Vector& a, const Vector& b) { vaddps(a, a, b); });
}

void SoftmaxRows::EmitScaling() {
  math_.Load(OfRow(), 1.0f);
  vdivps(OfRow(), OfRow(), Accumulator(0));
  Walk([&](int i, bool whole) {
    Load(i, dst_, whole);
    vmulps(Value(i), Value(i), OfRow());
    Store(i, whole);
  });
}

// Combines all lanes of all accumulators, into every lane of the first.
void SoftmaxRows::Reduce(absl::FunctionRef<void(const Vector&, const Vector&)> combine) {
  for (int width = kUnroll / 2; width >= 1; width /= 2) {
    for (int i = 0; i < width; ++i) combine(Accumulator(i), Accumulator(i + width));
  }
  const int sum = Accumulator(0).getIdx(), other = kScratch0;
  if (unit_.bytes() == 64) {
    vextractf64x4(Xbyak::Ymm(other), Xbyak::Zmm(sum), 1);
    combine(Xbyak::Ymm(sum), Xbyak::Ymm(other));
  }
  vextractf128(Xbyak::Xmm(other), Xbyak::Ymm(sum), 1);
  combine(Xbyak::Xmm(sum), Xbyak::Xmm(other));
  vmovhlps(Xbyak::Xmm(other), Xbyak::Xmm(sum), Xbyak::Xmm(sum));
  combine(Xbyak::Xmm(sum), Xbyak::Xmm(other));
  vmovshdup(Xbyak::Xmm(other), Xbyak::Xmm(sum));
  combine(Xbyak::Xmm(sum), Xbyak::Xmm(other));
  vbroadcastss(Accumulator(0), Xbyak::Xmm(sum));
}

}  // namespace tilewire
