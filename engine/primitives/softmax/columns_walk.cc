// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/softmax/columns_walk.h"

#include <limits>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/checked_math.h"

namespace tilewire::softmax {

int64_t ColumnsConfig::Vectors() const {
  if (form == ColumnsForm::kLanes) return rows;
  return DivUp(Copies() * rows, int64_t{unit.lanes()});
}

int64_t ColumnsConfig::Copies() const {
  if (form == ColumnsForm::kRows) return 1;
  if (form == ColumnsForm::kLanes) return unit.lanes();
  return unit.lanes() / std::gcd(rows, int64_t{unit.lanes()});
}

int64_t ColumnsConfig::WholeTurns() const { return size / Copies(); }

int64_t ColumnsConfig::Rest() const {
  return size % Copies() * (form == ColumnsForm::kCopies ? rows : 1);
}

namespace {

int TailLanes(const ColumnsConfig& config) {
  const int64_t elements = config.form == ColumnsForm::kRows ? config.rows : config.Rest();
  return static_cast<int>(elements % config.unit.lanes());
}

}  // namespace

ColumnsWalk::ColumnsWalk(absl::string_view name, const ColumnsConfig& config)
    : Generator(name),
      config_(config),
      tail_lanes_(TailLanes(config)),
      math_(this, config.unit, rax, k1),
      tail_(this, config.unit, {.spare = rax, .opmask = k2, .vector = 15}),
      copy_tail_(this, config.unit, {.spare = rax, .opmask = k3, .vector = 14}) {
  TILEWIRE_CHECK(config.Vectors() <= ColumnsConfig::kMostVectors,
                 "maxima and sums have room for the vectors of a turn");
}

void ColumnsWalk::Emit() {
  const bool has_copy_tail =
      config_.form == ColumnsForm::kCopies && config_.rows % config_.unit.lanes() != 0;
  if (tail_lanes_ != 0) tail_.Set(tail_lanes_);
  if (has_copy_tail) copy_tail_.Set(static_cast<int>(config_.rows % config_.unit.lanes()));
  math_.LoadTable();
  EmitMaxima();
  EmitExponentials();
  EmitScaling();
  vzeroupper();
  ret();
  math_.EmitTable();
  if (tail_lanes_ != 0) tail_.EmitTable();
  if (has_copy_tail) copy_tail_.EmitTable();
}

// Calls step() for every vector of every turn.
void ColumnsWalk::Walk(Step step) {
  const bool rows_have_tail = config_.form == ColumnsForm::kRows && tail_lanes_ != 0;
  mov(from_, src_);
  mov(to_, dst_);
  if (config_.WholeTurns() > 0) {
    Xbyak::Label turn;
    mov(left_, config_.WholeTurns());
    L(turn);
    Turn(config_.Vectors(), /*masked=*/false, rows_have_tail, step);
    mov(at_, config_.turn_bytes);
    add(from_, at_);
    add(to_, at_);
    dec(left_);
    jnz(turn, T_NEAR);
  }
  if (config_.Rest() == 0) return;
  if (config_.form == ColumnsForm::kLanes) {
    Turn(config_.Vectors(), /*masked=*/true, /*last_masked=*/true, step);
  } else {
    Turn(DivUp(config_.Rest(), int64_t{config_.unit.lanes()}), /*masked=*/false, tail_lanes_ != 0,
         step);
  }
}

// `masked`: of all vectors only the lanes of the tail; `last_masked`: of the last one.
void ColumnsWalk::Turn(int64_t vectors, bool masked, bool last_masked, Step step) {
  const int64_t at_once = (vectors - (last_masked ? 1 : 0)) / kUnroll * kUnroll;
  xor_(at_, at_);
  if (at_once > 0) {
    Xbyak::Label next;
    L(next);
    for (int i = 0; i < kUnroll; ++i) step(i, masked);
    add(at_, kUnroll * Bytes());
    cmp(at_, static_cast<int>(at_once * Bytes()));
    jb(next, T_NEAR);
  }
  const int rest = static_cast<int>(vectors - at_once);
  for (int i = 0; i < rest; ++i) step(i, masked || (last_masked && i == rest - 1));
}

// The address of what the vector becomes a few turns later: each run of elements ends before a
// prefetcher that follows addresses is far ahead. Addresses past the tensor are only a hint that
// goes nowhere.
Xbyak::Address ColumnsWalk::Ahead(const Xbyak::Reg64& base, int i) {
  const int64_t turns = DivUp(kVectorsAhead, config_.Vectors());
  const int64_t bytes = turns * config_.turn_bytes;
  const bool fits = bytes < std::numeric_limits<int32_t>::max() / 2;  // a displacement
  return ptr[base + at_ + (i * Bytes() + (fits ? static_cast<int>(bytes) : 0))];
}

void ColumnsWalk::SetAll(const Xbyak::Reg64& buffer, const Vector& value) {
  Turn(config_.Vectors(), /*masked=*/false, /*last_masked=*/false,
       [&](int i, bool) { vmovups(At(buffer, i), value); });
}

// vmaxps gives its second source when either is NaN. So NaN is passed over here, and comes back
// with its exponential.
void ColumnsWalk::EmitMaxima() {
  math_.Load(Fill(), -std::numeric_limits<float>::infinity());
  SetAll(maxima_, Fill());
  Walk([this](int i, bool masked) {
    prefetcht0(Ahead(from_, i));
    tail_.Load(Value(i), At(from_, i), masked);
    if (masked) tail_.ReplaceOthers(Value(i), Fill());
    vmaxps(Value(i), Value(i), At(maxima_, i));
    vmovups(At(maxima_, i), Value(i));
  });
  Combine(maxima_, [this](const Vector& a, const Xbyak::Operand& b) { vmaxps(a, a, b); });
}

// Channels after the last one are padding, which is zero.
void ColumnsWalk::EmitExponentials() {
  const bool pads = config_.form == ColumnsForm::kLanes;
  const Vector scratch0 = config_.unit.Vector(kScratch0), scratch1 = config_.unit.Vector(kScratch1);
  config_.unit.Zero(this, Fill());
  SetAll(sums_, Fill());
  Walk([&, this](int i, bool masked) {
    prefetcht0(Ahead(from_, i));
    prefetcht0(Ahead(to_, i));
    tail_.Load(Value(i), At(from_, i), masked);
    vsubps(Value(i), Value(i), At(maxima_, i));
    math_.Exp(Value(i), scratch0, scratch1);
    if (masked) tail_.ReplaceOthers(Value(i), Fill());
    vaddps(scratch0, Value(i), At(sums_, i));
    vmovups(At(sums_, i), scratch0);
    tail_.Store(At(to_, i), Value(i), masked && !pads);
  });
  Combine(sums_, [this](const Vector& a, const Xbyak::Operand& b) { vaddps(a, a, b); });
}

void ColumnsWalk::EmitScaling() {
  math_.Load(Fill(), 1.0f);
  Turn(config_.Vectors(), /*masked=*/false, /*last_masked=*/false, [this](int i, bool) {
    vdivps(Value(i), Fill(), At(sums_, i));
    vmovups(At(sums_, i), Value(i));
  });
  Walk([this](int i, bool masked) {
    tail_.Load(Value(i), At(to_, i), masked);
    vmulps(Value(i), Value(i), At(sums_, i));
    tail_.Store(At(to_, i), Value(i), masked);
  });
}

void ColumnsWalk::Combine(const Xbyak::Reg64& buffer,
                          absl::FunctionRef<void(const Vector&, const Xbyak::Operand&)> combine) {
  if (config_.form == ColumnsForm::kRows) return;
  if (config_.form == ColumnsForm::kCopies) return CombineCopies(buffer, combine);
  Turn(config_.Vectors(), /*masked=*/false, /*last_masked=*/false, [&, this](int i, bool) {
    const Vector half = config_.unit.Vector(kUnroll + i);
    vmovups(Value(i), At(buffer, i));
    config_.unit.FoldLanes(this, Value(i), half, [&] { combine(Value(i), half); });
    vmovups(At(buffer, i), Value(i));
  });
}

// The buffer is as many copies of all rows, one after the other.
void ColumnsWalk::CombineCopies(
    const Xbyak::Reg64& buffer,
    absl::FunctionRef<void(const Vector&, const Xbyak::Operand&)> combine) {
  const int lanes = config_.unit.lanes();
  const int rows = static_cast<int>(config_.rows), copies = static_cast<int>(config_.Copies());
  const Vector all = Value(0), other = Value(1);
  for (int row = 0; row < rows; row += lanes) {
    const bool masked = row + lanes > rows;
    const auto place = [&](int copy) { return ptr[buffer + (copy * rows + row) * 4]; };
    copy_tail_.Load(all, place(0), masked);
    for (int copy = 1; copy < copies; ++copy) {
      copy_tail_.Load(other, place(copy), masked);
      combine(all, other);
    }
    for (int copy = 0; copy < copies; ++copy) copy_tail_.Store(place(copy), all, masked);
  }
}

}  // namespace tilewire::softmax
