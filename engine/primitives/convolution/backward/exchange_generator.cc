// SPDX-License-Identifier: Apache-2.0
//
// Four columns at a time: a register holds them for rows that are four apart, 16 bytes of each, so
// that the four rows of each 16 bytes of a register are transposed without leaving them.
#include "engine/primitives/convolution/backward/exchange_generator.h"

#include <algorithm>
#include <cstddef>

namespace tilewire::convolution {
namespace {

constexpr int kBytesAtOnce = 64;
constexpr int kColumns = 4;  // of 16 bytes

}  // namespace

void ExchangeGenerator::Emit() {
  Xbyak::Label next;
  mov(from_, ptr[args_ + offsetof(ExchangeArgs, src)]);
  mov(to_, ptr[args_ + offsetof(ExchangeArgs, dst)]);
  mov(squares_, ptr[args_ + offsetof(ExchangeArgs, squares)]);
  mov(count_, ptr[args_ + offsetof(ExchangeArgs, count)]);
  L(next);
  mov(src_, ptr[squares_ + offsetof(ExchangeSquare, src)]);
  mov(dst_, ptr[squares_ + offsetof(ExchangeSquare, dst)]);
  mov(ahead_, ptr[squares_ + kAhead * sizeof(ExchangeSquare) + offsetof(ExchangeSquare, src)]);
  add(src_, from_);
  add(dst_, to_);
  add(ahead_, from_);
  Prefetch();
  for (int column = 0; column < unit_.lanes(); column += kColumns) EmitColumns(column);
  add(squares_, static_cast<int>(sizeof(ExchangeSquare)));
  dec(count_);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
}

void ExchangeGenerator::Prefetch() {
  const int rows_of_line = std::max(1, kBytesAtOnce / std::max(1, src_row_));
  for (int row = 0; row < unit_.lanes(); row += rows_of_line)
    prefetcht0(ptr[ahead_ + row * src_row_]);
}

// 16 bytes of rows row, row + 4, and so on.
void ExchangeGenerator::InsertRows(const Xbyak::Xmm& to, int row, int column) {
  const auto from = [&](int r) {
    return ptr[src_ + r * src_row_ + column * static_cast<int>(sizeof(float))];
  };
  vmovups(Xbyak::Xmm(to.getIdx()), from(row));
  for (int i = 1; i < unit_.lanes() / kColumns; ++i) {
    const Xbyak::Ymm half(to.getIdx());
    const Xbyak::Zmm whole(to.getIdx());
    if (unit_.bytes() > half.getBit() / 8) {
      vinsertf32x4(whole, whole, from(row + i * kColumns), static_cast<uint8_t>(i));
    } else {
      vinsertf128(half, half, from(row + i * kColumns), static_cast<uint8_t>(i));
    }
  }
}

void ExchangeGenerator::EmitColumns(int first) {
  const int registers = first / kColumns % 2 * 2 * kColumns;  // two sets in turn
  const auto row = [&](int i) { return unit_.Vector(registers + i); };
  const auto pair = [&](int i) { return unit_.Vector(registers + kColumns + i); };
  for (int i = 0; i < kColumns; ++i) InsertRows(row(i), i, first);
  for (int i : {0, 2}) {
    vunpcklps(pair(i), row(i), row(i + 1));
    vunpckhps(pair(i + 1), row(i), row(i + 1));
  }
  for (int i : {0, 1}) {
    vunpcklpd(row(2 * i), pair(i), pair(2 + i));
    vunpckhpd(row(2 * i + 1), pair(i), pair(2 + i));
  }
  for (int i = 0; i < kColumns; ++i) vmovups(ptr[dst_ + (first + i) * dst_row_], row(i));
}

}  // namespace tilewire::convolution
