// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/dot_tile.h"

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/base/check.h"
#include "engine/kernels/elements/lane_sums.h"

namespace tilewire {

DotTile::DotTile(absl::string_view name, const DotTileConfig& config)
    : AccumulatorTile(name, config.epilogue),
      config_(config),
      parts_(static_cast<int>(std::bit_ceil(static_cast<unsigned>(config.epilogue.pixels)))),
      tail_(this, config.epilogue.unit, {.spare = left_, .opmask = k3, .vector = 15}) {
  TILEWIRE_CHECK(Rows() >= 1 && Rows() <= MaxRows(config.epilogue.unit),
                 "a register for each row's sums");
}

void DotTile::Emit() {
  mov(src_, ptr[args_ + offsetof(StridedTileArgs, src)]);
  mov(weights_, ptr[args_ + offsetof(StridedTileArgs, weights)]);
  if (config_.k % Lanes() != 0) tail_.Set(static_cast<int>(config_.k % Lanes()));
  for (int part = 0; part < parts_; ++part) EmitPart(part);
  ExchangeParts();
  LoadResultPointers(offsetof(StridedTileArgs, dst), offsetof(StridedTileArgs, bias));
  FinishSums(/*zero_tail=*/false);
  vzeroupper();
  ret();
  epilogue_.EmitTables();
  if (config_.k % Lanes() != 0) tail_.EmitTable();
}

// PartSums(part) = the sums of the part's columns for one row after the other.
void DotTile::EmitPart(int part) {
  const int64_t steps = config_.k / Lanes();
  for (int i = 0; i < Lanes(); ++i) config_.epilogue.unit.Zero(this, Vector(i));
  xor_(at_, at_);
  if (config_.fetches_ahead)
    lea(ahead_, ptr[weights_ + ColumnOffset((part + 1) * ColumnsOfPart())]);
  if (steps > 0) {
    Xbyak::Label next;
    mov(left_, steps);
    L(next);
    EmitStep(part, /*masked=*/false);
    add(at_, config_.epilogue.unit.bytes());
    dec(left_);
    jnz(next, T_NEAR);
  }
  if (config_.k % Lanes() != 0) EmitStep(part, /*masked=*/true);
  EmitLaneSums(this, config_.epilogue.unit, Spare());
  vmovaps(PartSums(part), Vector(0));
}

// sums += a vector of each row times one of each column. In place of columns after the last one,
// whose sums are not stored, the last one is read.
void DotTile::EmitStep(int part, bool masked) {
  const int tail = config_.epilogue.tail_lanes;
  const int columns = tail == 0 ? Lanes() : tail;
  for (int r = 0; r < Rows(); ++r) {
    const int offset = static_cast<int>(r * config_.src_row_bytes);
    tail_.Load(Source(r), ptr[src_ + at_ + offset], masked);
  }
  for (int c = 0; c < ColumnsOfPart(); ++c) {
    const int column = std::min(part * ColumnsOfPart() + c, columns - 1);
    tail_.Load(Weights(), ptr[weights_ + at_ + ColumnOffset(column)], masked);
    if (config_.fetches_ahead && !masked) prefetcht1(ptr[ahead_ + at_ + ColumnOffset(c)]);
    for (int r = 0; r < Rows(); ++r)
      vfmadd231ps(Vector(r * ColumnsOfPart() + c), Weights(), Source(r));
  }
}

// Vector r = the sums of row r for all columns.
void DotTile::ExchangeParts() {
  constexpr int kLowerHalves = 0x44, kUpperHalves = 0xEE, kEven = 0x88, kOdd = 0xDD;
  if (parts_ == 1) return vmovaps(Vector(0), PartSums(0));
  if (Lanes() == 8) {
    const Xbyak::Ymm a(PartSums(0).getIdx()), b(PartSums(1).getIdx());
    vperm2f128(Xbyak::Ymm(0), a, b, 0x20);
    vperm2f128(Xbyak::Ymm(1), a, b, 0x31);
    return;
  }
  const auto part = [this](int i) { return Xbyak::Zmm(PartSums(i).getIdx()); };
  if (parts_ == 2) {
    vshuff32x4(Xbyak::Zmm(0), part(0), part(1), kLowerHalves);
    vshuff32x4(Xbyak::Zmm(1), part(0), part(1), kUpperHalves);
    return;
  }
  const Xbyak::Zmm low(4), high(5);
  for (const int half : {kLowerHalves, kUpperHalves}) {
    const int row = half == kLowerHalves ? 0 : 2;
    vshuff32x4(low, part(0), part(1), half);
    vshuff32x4(high, part(2), part(3), half);
    vshuff32x4(Xbyak::Zmm(row), low, high, kEven);
    vshuff32x4(Xbyak::Zmm(row + 1), low, high, kOdd);
  }
}

}  // namespace tilewire
