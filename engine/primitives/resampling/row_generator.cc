// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/resampling/row_generator.h"

#include <cstddef>

namespace tilewire::resampling {

void RowGenerator::Emit() {
  Preamble();
  for (int r = 0; r < config_.rows; ++r) {
    mov(rows_[r], ptr[rdi + offsetof(RowArgs, rows) + r * sizeof(float*)]);
    vbroadcastss(RowWeight(r), ptr[rdi + offsetof(RowArgs, weights) + r * sizeof(float)]);
  }
  for (int s = 0; s < config_.sides; ++s) {
    mov(tables_[s], ptr[rdi + offsetof(RowArgs, offsets) + s * sizeof(void*)]);
    mov(sides_[s], ptr[rdi + offsetof(RowArgs, sides) + s * sizeof(void*)]);
  }
  mov(dst_, ptr[rdi + offsetof(RowArgs, dst)]);
  mov(outputs_, ptr[rdi + offsetof(RowArgs, outputs)]);
  if (config_.cell == 1) {
    EmitGathers();
  } else {
    EmitCells();
  }
  Postamble();
  tail_.EmitTable();
}

void RowGenerator::EmitCells() {
  if (config_.cell % lanes() != 0) {
    mov(column_, config_.cell % lanes());
    tail_.Set(column_);
  }
  Xbyak::Label output;
  L(output);
  for (int s = 0; s < config_.sides; ++s) {
    movsxd(at_[s], dword[tables_[s]]);
    vbroadcastss(Side(s), ptr[sides_[s]]);
    add(tables_[s], 4);
    add(sides_[s], 4);
  }
  EmitCell();
  add(dst_, static_cast<int>(config_.cell * 4));
  dec(outputs_);
  jnz(output, T_NEAR);
}

void RowGenerator::EmitCell() {
  const int64_t whole = config_.cell / lanes() * lanes() * 4;  // bytes
  xor_(column_, column_);
  if (whole > 0) {
    Xbyak::Label vector;
    L(vector);
    EmitCellVector(/*masked=*/false);
    add(column_, lanes() * 4);
    if (whole > lanes() * 4) {
      cmp(column_, static_cast<int>(whole));
      jl(vector, T_NEAR);
    }
  }
  if (config_.cell % lanes() != 0) EmitCellVector(/*masked=*/true);
}

void RowGenerator::EmitCellVector(bool masked) {
  vxorps(sum_, sum_, sum_);
  for (int r = 0; r < config_.rows; ++r) {
    for (int s = 0; s < config_.sides; ++s) {
      // An address has two registers at most.
      lea(spare_, ptr[rows_[r] + at_[s]]);
      tail_.Load(s == 0 ? value_ : other_, ptr[spare_ + column_], masked);
    }
    AddRow(r);
  }
  tail_.Store(ptr[dst_ + column_], sum_, masked);
}

// sum += row's weight * (sides' weights * samples); one sample of one row is dst itself.
void RowGenerator::AddRow(int row) {
  if (config_.sides == 1) {
    vmovaps(sum_, value_);
    return;
  }
  vmulps(value_, value_, Side(0));
  vfmadd231ps(value_, other_, Side(1));
  vfmadd231ps(sum_, value_, RowWeight(row));
}

// The tables are as long as a whole number of vectors.
void RowGenerator::EmitGathers() {
  Xbyak::Label next, rest, done;
  xor_(column_, column_);
  L(next);
  cmp(outputs_, lanes());
  jl(rest, T_NEAR);
  EmitGatherVector(/*masked=*/false);
  add(column_, lanes() * 4);
  sub(outputs_, lanes());
  jmp(next, T_NEAR);
  L(rest);
  test(outputs_, outputs_);
  jz(done, T_NEAR);
  tail_.Set(outputs_);
  EmitGatherVector(/*masked=*/true);
  L(done);
}

void RowGenerator::EmitGatherVector(bool masked) {
  vxorps(sum_, sum_, sum_);
  for (int s = 0; s < config_.sides; ++s) vmovups(Side(s), ptr[sides_[s] + column_]);
  for (int r = 0; r < config_.rows; ++r) {
    for (int s = 0; s < config_.sides; ++s) {
      vmovups(index_, ptr[tables_[s] + column_]);
      config_.unit.Gather(this, s == 0 ? value_ : other_, rows_[r], index_, /*scale=*/1,
                          /*displacement=*/0, gathered_, kGathered);
    }
    AddRow(r);
  }
  tail_.Store(ptr[dst_ + column_], sum_, masked);
}

}  // namespace tilewire::resampling
