// SPDX-License-Identifier: Apache-2.0
//
// Four columns at a time: a register holds them for two rows, four apart, so that the four rows of
// each half of a register are transposed without crossing to the other half.
#include "engine/primitives/convolution/backward/exchange_generator.h"

#include <algorithm>
#include <cstddef>

namespace tilewire::convolution {
namespace {

constexpr int kBytesAtOnce = 64;
constexpr int kHalfSide = ExchangeGenerator::kSide / 2;
constexpr int kHalfBytes = kHalfSide * static_cast<int>(sizeof(float));

}  // namespace

void ExchangeGenerator::Emit() {
  Xbyak::Label next;
  mov(from_, ptr[args_ + offsetof(ExchangeArgs, src)]);
  mov(to_, ptr[args_ + offsetof(ExchangeArgs, dst)]);
  mov(squares_, ptr[args_ + offsetof(ExchangeArgs, squares)]);
  mov(count_, ptr[args_ + offsetof(ExchangeArgs, count)]);
  mov(ahead_, ptr[args_ + offsetof(ExchangeArgs, ahead)]);
  L(next);
  mov(src_, ptr[squares_ + offsetof(ExchangeSquare, src)]);
  mov(dst_, ptr[squares_ + offsetof(ExchangeSquare, dst)]);
  add(src_, from_);
  add(dst_, to_);
  Prefetch();
  for (int half : {0, 1}) EmitHalf(half);
  add(squares_, static_cast<int>(sizeof(ExchangeSquare)));
  dec(count_);
  jnz(next, T_NEAR);
  vzeroupper();
  ret();
}

void ExchangeGenerator::Prefetch() {
  const int rows_of_line = std::max(1, kBytesAtOnce / std::max(1, src_row_));
  for (int row = 0; row < kSide; row += rows_of_line)
    prefetcht0(ptr[src_ + ahead_ + row * src_row_]);
}

void ExchangeGenerator::EmitHalf(int half) {
  const auto row = [half](int i) { return Xbyak::Ymm(half * kSide + i); };
  const auto pair = [half](int i) { return Xbyak::Ymm(half * kSide + kHalfSide + i); };
  for (int i = 0; i < kHalfSide; ++i) {
    const int low = i * src_row_ + half * kHalfBytes, high = low + kHalfSide * src_row_;
    vmovups(Xbyak::Xmm(row(i).getIdx()), ptr[src_ + low]);
    vinsertf128(row(i), row(i), ptr[src_ + high], 1);
  }
  for (int i : {0, 2}) {
    vunpcklps(pair(i), row(i), row(i + 1));
    vunpckhps(pair(i + 1), row(i), row(i + 1));
  }
  for (int i : {0, 1}) {
    vunpcklpd(row(2 * i), pair(i), pair(2 + i));
    vunpckhpd(row(2 * i + 1), pair(i), pair(2 + i));
  }
  for (int i = 0; i < kHalfSide; ++i)
    vmovups(ptr[dst_ + (half * kHalfSide + i) * dst_row_], row(i));
}

}  // namespace tilewire::convolution
