// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/weights_gradient_generator.h"

#include <cstddef>

namespace tilewire::convolution {

int WeightsGradientGenerator::MostChannels(const VectorUnit& unit, int blocks) {
  return unit.registers() >= 32 || blocks == 1 ? 8 : 4;
}

void WeightsGradientGenerator::Emit() {
  for (int i = 0; i < Sums(); ++i) tile_.unit.Zero(this, tile_.unit.Vector(i));
  EmitRows();
  AddSums();
  vzeroupper();
  ret();
  if (tile_.tail_lanes != 0) tail_.EmitTable();
}

void WeightsGradientGenerator::EmitRows() {
  Xbyak::Label next_row, next_pixel;
  mov(src_row_, ptr[args_ + offsetof(WeightsGradientArgs, src)]);
  mov(dst_row_, ptr[args_ + offsetof(WeightsGradientArgs, diff_dst)]);
  mov(rows_, ptr[args_ + offsetof(WeightsGradientArgs, rows)]);
  L(next_row);
  mov(src_, src_row_);
  mov(dst_, dst_row_);
  mov(pixels_, ptr[args_ + offsetof(WeightsGradientArgs, pixels)]);
  L(next_pixel);
  EmitPixel();
  add(src_, static_cast<int>(tile_.src_pixel));
  add(dst_, static_cast<int>(tile_.dst_pixel));
  dec(pixels_);
  jnz(next_pixel, T_NEAR);
  add(src_row_, static_cast<int>(tile_.src_row));
  add(dst_row_, static_cast<int>(tile_.dst_row));
  dec(rows_);
  jnz(next_row, T_NEAR);
}

int WeightsGradientGenerator::SrcOffset(int channel) const {
  if (!tile_.depthwise) return static_cast<int>(channel * tile_.src_channel);
  return static_cast<int>(channel / tile_.taps_of_row * tile_.src_tap_row +
                          channel % tile_.taps_of_row * tile_.src_channel);
}

int WeightsGradientGenerator::WeightsOffset(int block, int channel) const {
  const int64_t first = block * tile_.weights_block;
  if (!tile_.depthwise) return static_cast<int>(first + channel * tile_.weights_channel);
  return static_cast<int>(first + channel / tile_.taps_of_row * tile_.weights_tap_row +
                          channel % tile_.taps_of_row * tile_.weights_channel);
}

void WeightsGradientGenerator::EmitPixel() {
  for (int b = 0; b < tile_.blocks; ++b)
    vmovups(Block(b), ptr[dst_ + static_cast<int>(b * tile_.dst_block)]);
  for (int c = 0; c < tile_.channels; ++c) {
    if (tile_.depthwise) {
      vfmadd231ps(Sum(0, c), Block(0), ptr[src_ + SrcOffset(c)]);
      continue;
    }
    vbroadcastss(Channel(), ptr[src_ + SrcOffset(c)]);
    for (int b = 0; b < tile_.blocks; ++b) vfmadd231ps(Sum(b, c), Channel(), Block(b));
  }
}

// Lanes after the last output channel are left as they are.
void WeightsGradientGenerator::AddSums() {
  const bool has_tail = tile_.tail_lanes != 0;
  const Xbyak::Xmm before = tile_.unit.Vector(Sums() + 1);
  if (has_tail) tail_.Set(tile_.tail_lanes);
  mov(weights_, ptr[args_ + offsetof(WeightsGradientArgs, diff_weights)]);
  for (int b = 0; b < tile_.blocks; ++b) {
    const bool masked = has_tail && b == tile_.blocks - 1;
    for (int c = 0; c < tile_.channels; ++c) {
      const int at = WeightsOffset(b, c);
      tail_.Load(before, ptr[weights_ + at], masked);
      vaddps(before, before, Sum(b, c));
      tail_.Store(ptr[weights_ + at], before, masked);
    }
  }
}

}  // namespace tilewire::convolution
