// SPDX-License-Identifier: Apache-2.0
//
// Outputs whose window lies inside src along W take the middle's loop, several at a time; the
// others, at the edges, are emitted one by one with the taps that remain of their windows.
#include "engine/primitives/pooling/row_generator.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

namespace tilewire::pooling {
namespace {

constexpr int kOrdered = 7;

}  // namespace

Xbyak::Xmm RowGenerator::Vector(int index) const {
  return Xbyak::Xmm(is_avx512() ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, index);
}

void RowGenerator::Emit() {
  Preamble();
  mov(src_, ptr[rdi + offsetof(RowArgs, src)]);
  mov(dst_, ptr[rdi + offsetof(RowArgs, dst)]);
  const auto first = [this](int64_t out) { return out * shape_.stride - shape_.padding; };
  int64_t middle = 0;
  while (middle < shape_.out && first(middle) < 0) ++middle;
  int64_t end = middle;
  while (end < shape_.out && first(end) + shape_.kernel <= shape_.in) ++end;
  for (int64_t out = 0; out < shape_.out; ++out) {
    if (out == middle && end > middle) {
      EmitMiddle(middle, end);
      out = end - 1;
      continue;
    }
    const int64_t begin = std::max<int64_t>(first(out), 0);
    const int64_t taps = std::min(first(out) + shape_.kernel, shape_.in) - begin;
    EmitOutputs(src_, begin, dst_, out, 1, taps);
  }
  Postamble();
}

void RowGenerator::EmitMiddle(int64_t begin, int64_t end) {
  lea(src_step_, ptr[src_ + (begin * shape_.stride - shape_.padding) * pixel_bytes()]);
  lea(dst_step_, ptr[dst_ + begin * pixel_bytes()]);
  const int64_t steps = (end - begin) / step();
  if (steps > 0) {
    Xbyak::Label next;
    mov(steps_, steps);
    L(next);
    EmitOutputs(src_step_, 0, dst_step_, 0, step(), shape_.kernel);
    add(src_step_, static_cast<uint32_t>(step() * shape_.stride * pixel_bytes()));
    add(dst_step_, static_cast<uint32_t>(step() * pixel_bytes()));
    dec(steps_);
    jnz(next, T_NEAR);
  }
  const int rest = static_cast<int>((end - begin) % step());
  if (rest > 0) EmitOutputs(src_step_, 0, dst_step_, 0, rest, shape_.kernel);
}

void RowGenerator::EmitOutputs(const Xbyak::Reg64& src, int64_t src_pixel, const Xbyak::Reg64& dst,
                               int64_t dst_pixel, int count, int64_t taps) {
  const bool is_max = shape_.algorithm == PoolingAlgorithm::kMax;
  Broadcast(Vector(0), is_max ? -std::numeric_limits<float>::infinity() : 0.0f);
  for (int i = 1; i < count; ++i) vmovaps(Vector(i), Vector(0));
  Xbyak::Label next_depth, next_height;
  lea(depth_src_, ptr[src + src_pixel * pixel_bytes()]);
  mov(depths_, ptr[rdi + offsetof(RowArgs, depths)]);
  L(next_depth);
  mov(height_src_, depth_src_);
  mov(heights_, ptr[rdi + offsetof(RowArgs, heights)]);
  L(next_height);
  for (int64_t tap = 0; tap < taps; ++tap) {
    for (int i = 0; i < count; ++i) EmitTap(i, (i * shape_.stride + tap) * pixel_bytes());
  }
  add(height_src_, ptr[rdi + offsetof(RowArgs, height_stride_bytes)]);
  dec(heights_);
  jnz(next_height, T_NEAR);
  add(depth_src_, ptr[rdi + offsetof(RowArgs, depth_stride_bytes)]);
  dec(depths_);
  jnz(next_depth, T_NEAR);
  if (!is_max) EmitDivision(count, taps);
  for (int i = 0; i < count; ++i) vmovups(ptr[dst + (dst_pixel + i) * pixel_bytes()], Vector(i));
}

// vmaxps gives its second source when either is NaN, so a plain maximum would forget a NaN it
// holds.
void RowGenerator::EmitTap(int output, int64_t displacement) {
  const Xbyak::Xmm result = Vector(output);
  const Xbyak::Address value = ptr[height_src_ + displacement];
  if (shape_.algorithm != PoolingAlgorithm::kMax) {
    vaddps(result, result, value);
  } else if (is_avx512()) {
    vcmpps(ordered_, result, result, kOrdered);
    vmaxps(result | ordered_, result, value);
  } else {
    // Either order alone loses one of the two NaNs; without a NaN both are the same number.
    vmovups(Scratch(0), value);
    vmaxps(Scratch(1), result, Scratch(0));
    vmaxps(Scratch(0), Scratch(0), result);
    vorps(result, Scratch(0), Scratch(1));
  }
}

void RowGenerator::EmitDivision(int count, int64_t taps) {
  const Xbyak::Xmm divisor = Scratch(0);
  if (shape_.algorithm == PoolingAlgorithm::kAvgIncludePadding) {
    Broadcast(divisor, static_cast<float>(shape_.window));
  } else {
    Broadcast(divisor, static_cast<float>(taps));
    vbroadcastss(Scratch(1), ptr[rdi + offsetof(RowArgs, rows)]);
    vmulps(divisor, divisor, Scratch(1));
  }
  for (int i = 0; i < count; ++i) vdivps(Vector(i), Vector(i), divisor);
}

void RowGenerator::Broadcast(const Xbyak::Xmm& vector, float value) {
  const Xbyak::Xmm low(vector.getIdx());
  mov(eax, std::bit_cast<uint32_t>(value));
  vmovd(low, eax);
  vbroadcastss(vector, low);
}

}  // namespace tilewire::pooling
