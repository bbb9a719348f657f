// SPDX-License-Identifier: Apache-2.0
//
// A vector of floats becomes two of doubles, its parts. First G times each column of taps goes to
// memory, then each row of that is multiplied by G^T. The two parts of a result are joined for the
// store, so that a line of dst is written at once: the points are far apart, often by a power of
// two, and compete for one set of every cache.
#include "engine/primitives/reorder/winograd_weights_generator.h"

#include <bit>
#include <cstddef>

#include "engine/kernels/tiles/winograd_transforms.h"

namespace tilewire::reorder {

WinogradWeightsGenerator::WinogradWeightsGenerator(absl::string_view name, const VectorUnit& unit,
                                                   int tile)
    : Generator(name, 32768), unit_(unit), tile_(tile) {}

void WinogradWeightsGenerator::Emit() {
  Preamble();
  mov(taps_, ptr[rdi + offsetof(WinogradWeightsArgs, taps)]);
  mov(half_, ptr[rdi + offsetof(WinogradWeightsArgs, half)]);
  mov(dst_, ptr[rdi + offsetof(WinogradWeightsArgs, dst)]);
  mov(inputs_, ptr[rdi + offsetof(WinogradWeightsArgs, inputs)]);
  mov(point_step_, ptr[rdi + offsetof(WinogradWeightsArgs, point_bytes)]);
  LoadConstants();
  Xbyak::Label input, streaming, next;
  L(input);
  for (int part : {0, 1}) EmitColumns(part);
  mov(point_, dst_);
  cmp(qword[rdi + offsetof(WinogradWeightsArgs, streams)], 0);
  jne(streaming, T_NEAR);
  for (int row = 0; row < side(); ++row) EmitRow(row, /*streams=*/false);
  jmp(next, T_NEAR);
  L(streaming);
  for (int row = 0; row < side(); ++row) EmitRow(row, /*streams=*/true);
  L(next);
  add(taps_, 9 * vector_bytes());
  add(dst_, ptr[rdi + offsetof(WinogradWeightsArgs, input_bytes)]);
  dec(inputs_);
  jnz(input, T_NEAR);
  sfence();
  Postamble();
  EmitTable();
}

void WinogradWeightsGenerator::LoadConstants() {
  lea(table_, ptr[rip + constants_]);
  for (int i = 0; i < ConstantCount(); ++i) vbroadcastsd(Constant(i), ptr[table_ + i * 8]);
}

// G times the columns of taps.
void WinogradWeightsGenerator::EmitColumns(int part) {
  const Xbyak::Xmm result = Vector(0), even = Vector(1), odd = Vector(2);
  for (int column = 0; column < 3; ++column) {
    for (int row = 0; row < 3; ++row) {
      vcvtps2pd(Vector(kTaps + row), ptr[taps_ + TapOffset(row, column, part)]);
    }
    const auto to = [&](int point) { return ptr[half_ + HalfOffset(point, column, part)]; };
    vmulpd(result, Vector(kTaps), Constant(0));
    vmovups(to(0), result);
    for (int point = 1; point < side() - 1; point += 2) {
      EmitPair(point, even, odd, result);
      vmovups(to(point), result);
      vmovups(to(point + 1), even);
    }
    vmovups(to(side() - 1), Vector(kTaps + 2));
  }
}

// Stores the points of one row to dst.
void WinogradWeightsGenerator::EmitRow(int row, bool streams) {
  const Xbyak::Xmm plus[2] = {Vector(0), Vector(3)}, even[2] = {Vector(1), Vector(4)},
                   odd[2] = {Vector(2), Vector(5)};
  for (int part : {0, 1}) {
    vmovups(plus[part], ptr[half_ + HalfOffset(row, 0, part)]);
    vmulpd(plus[part], plus[part], Constant(0));
  }
  StorePoint(plus[0], plus[1], streams);
  for (int point = 1; point < side() - 1; point += 2) {
    for (int part : {0, 1}) {
      for (int tap = 0; tap < 3; ++tap) {
        vmovups(Vector(kTaps + tap), ptr[half_ + HalfOffset(row, tap, part)]);
      }
      EmitPair(point, even[part], odd[part], plus[part]);
    }
    StorePoint(plus[0], plus[1], streams);
    StorePoint(even[0], even[1], streams);
  }
  for (int part : {0, 1}) vmovups(plus[part], ptr[half_ + HalfOffset(row, 2, part)]);
  StorePoint(plus[0], plus[1], streams);
}

void WinogradWeightsGenerator::EmitPair(int point, const Xbyak::Xmm& even, const Xbyak::Xmm& odd,
                                        const Xbyak::Xmm& plus) {
  const int first = 1 + 3 * (point / 2);
  vmulpd(even, Vector(kTaps + 0), Constant(first));
  vmulpd(odd, Vector(kTaps + 2), Constant(first + 2));
  vaddpd(even, even, odd);
  vmulpd(odd, Vector(kTaps + 1), Constant(first + 1));
  vaddpd(plus, even, odd);
  vsubpd(even, even, odd);
}

// Stores the two parts of a point, and moves point_ to the next.
void WinogradWeightsGenerator::StorePoint(const Xbyak::Xmm& low, const Xbyak::Xmm& high,
                                          bool streams) {
  const Xbyak::Xmm floats = HalfVector(low.getIdx()), upper = HalfVector(high.getIdx());
  const Xbyak::Ymm joined = Vector(low.getIdx());
  vcvtpd2ps(floats, low);
  vcvtpd2ps(upper, high);
  if (unit_.bytes() == 64) {
    vinsertf64x4(Xbyak::Zmm(low.getIdx()), Xbyak::Zmm(low.getIdx()), Xbyak::Ymm(high.getIdx()), 1);
  } else {
    vinsertf128(joined, joined, upper, 1);
  }
  streams ? vmovntps(ptr[point_], joined) : vmovups(ptr[point_], joined);
  add(point_, point_step_);
}

void WinogradWeightsGenerator::EmitTable() {
  const auto g = WinogradWeightsTransform(tile_);
  align(8);
  L(constants_);
  dq(std::bit_cast<uint64_t>(g[0][0]));
  for (int point = 1; point < side() - 1; point += 2) {
    for (double coefficient : g[point]) dq(std::bit_cast<uint64_t>(coefficient));
  }
}

}  // namespace tilewire::reorder
