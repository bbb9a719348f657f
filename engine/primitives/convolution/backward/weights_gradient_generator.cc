// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/weights_gradient_generator.h"

#include <cstddef>

#include "engine/base/checked_math.h"

namespace tilewire::convolution {
namespace {

constexpr int kBytesOfLine = 64;

}  // namespace

void WeightsGradientGenerator::Emit() {
  Xbyak::Label next;
  Preamble();
  mov(src_block_, ptr[args_ + offsetof(WeightsGradientArgs, src)]);
  mov(weights_, ptr[args_ + offsetof(WeightsGradientArgs, diff_weights)]);
  mov(src_blocks_, ptr[args_ + offsetof(WeightsGradientArgs, src_blocks)]);
  mov(src_ahead_, ptr[args_ + offsetof(WeightsGradientArgs, src_ahead)]);
  mov(dst_ahead_, ptr[args_ + offsetof(WeightsGradientArgs, dst_ahead)]);
  L(next);
  EmitBlock();
  add(src_block_, ptr[args_ + offsetof(WeightsGradientArgs, src_block)]);
  add(weights_, ptr[args_ + offsetof(WeightsGradientArgs, weights_src_block)]);
  add(dst_ahead_, ptr[args_ + offsetof(WeightsGradientArgs, dst_ahead_step)]);
  dec(src_blocks_);
  jnz(next, T_NEAR);
  Postamble();
  if (tile_.tail_lanes != 0) tail_.EmitTable();
}

void WeightsGradientGenerator::EmitBlock() {
  const int64_t most = MostSums(tile_.unit) / (tile_.blocks * tile_.chains);
  for (const Range& sources : SplitEvenly(tile_.sources, DivUp(tile_.sources, most)))
    EmitPart({sources, sources.begin == 0, sources.begin + sources.size == tile_.sources});
}

void WeightsGradientGenerator::EmitPart(const Part& part) {
  FetchWeights(part.sources);
  for (int i = 0; i < tile_.blocks * tile_.chains * part.sources.size; ++i)
    tile_.unit.Zero(this, tile_.unit.Vector(i));
  EmitRows(part);
  JoinChains(part.sources);
  Xbyak::Label adds, done;
  cmp(qword[args_ + offsetof(WeightsGradientArgs, replaces)], 0);
  je(adds, T_NEAR);
  PutSums(part.sources);
  jmp(done, T_NEAR);
  L(adds);
  AddSums(part.sources);
  L(done);
}

// The lines that the sums are added to in the end.
void WeightsGradientGenerator::FetchWeights(const Range& sources) {
  for (int b = 0; b < tile_.blocks; ++b) {
    int fetched = 0;
    for (int64_t s = sources.begin; s < sources.begin + sources.size; ++s) {
      const int at = WeightsOffset(b, s);
      if (s > sources.begin && at >= fetched && at < fetched + kBytesOfLine) continue;
      prefetchw(ptr[weights_ + at]);
      fetched = at;
    }
  }
}

void WeightsGradientGenerator::EmitRows(const Part& part) {
  Xbyak::Label next_row;
  mov(src_row_, src_block_);
  mov(dst_row_, ptr[args_ + offsetof(WeightsGradientArgs, diff_dst)]);
  mov(rows_, ptr[args_ + offsetof(WeightsGradientArgs, rows)]);
  L(next_row);
  mov(src_, src_row_);
  mov(dst_, dst_row_);
  mov(pixels_, ptr[args_ + offsetof(WeightsGradientArgs, pixels)]);
  EmitPixels(part);
  add(src_row_, static_cast<int>(tile_.src_row));
  add(dst_row_, static_cast<int>(tile_.dst_row));
  dec(rows_);
  jnz(next_row, T_NEAR);
}

// Some at a time, and what is left one by one.
void WeightsGradientGenerator::EmitPixels(const Part& part) {
  Xbyak::Label next, last, done;
  sub(pixels_, PixelsAtOnce());
  jl(last, T_NEAR);
  L(next);
  for (int pixel = 0; pixel < PixelsAtOnce(); ++pixel) {
    if (tile_.fetches_ahead) FetchAhead(part, pixel);
    EmitPixel(part.sources, pixel);
  }
  add(src_, static_cast<int>(PixelsAtOnce() * tile_.src_pixel));
  add(dst_, static_cast<int>(PixelsAtOnce() * tile_.dst_pixel));
  sub(pixels_, PixelsAtOnce());
  jge(next, T_NEAR);
  L(last);
  add(pixels_, PixelsAtOnce());
  jz(done, T_NEAR);
  EmitLastPixels(part.sources);
  L(done);
}

void WeightsGradientGenerator::EmitLastPixels(const Range& sources) {
  Xbyak::Label next;
  L(next);
  EmitPixel(sources, 0);
  if (PixelsAtOnce() == 2) return;  // one is left
  add(src_, static_cast<int>(tile_.src_pixel));
  add(dst_, static_cast<int>(tile_.dst_pixel));
  dec(pixels_);
  jnz(next, T_NEAR);
}

// Once for every line, about: src by the first part, diff_dst by the last.
void WeightsGradientGenerator::FetchAhead(const Part& part, int pixel) {
  const auto begins_line = [pixel](int64_t step) {
    return pixel == 0 || pixel * step / kBytesOfLine != (pixel - 1) * step / kBytesOfLine;
  };
  if (part.is_first && begins_line(tile_.src_pixel))
    prefetcht0(ptr[src_ + src_ahead_ + static_cast<int>(pixel * tile_.src_pixel)]);
  if (part.is_last && begins_line(tile_.dst_pixel))
    prefetcht0(ptr[dst_ + dst_ahead_ + static_cast<int>(pixel * tile_.dst_pixel)]);
}

int WeightsGradientGenerator::SrcOffset(int64_t source) const {
  return static_cast<int>(source / tile_.sources_of_row * tile_.src_source_row +
                          source % tile_.sources_of_row * tile_.src_source);
}

int WeightsGradientGenerator::WeightsOffset(int block, int64_t source) const {
  return static_cast<int>(block * tile_.weights_block +
                          source / tile_.sources_of_row * tile_.weights_source_row +
                          source % tile_.sources_of_row * tile_.weights_source);
}

void WeightsGradientGenerator::EmitPixel(const Range& sources, int pixel) {
  const int src = static_cast<int>(pixel * tile_.src_pixel);
  const int dst = static_cast<int>(pixel * tile_.dst_pixel), chain = pixel % tile_.chains;
  for (int b = 0; b < tile_.blocks; ++b)
    vmovups(Block(b), ptr[dst_ + dst + static_cast<int>(b * tile_.dst_block)]);
  for (int64_t s = sources.begin; s < sources.begin + sources.size; ++s) {
    if (tile_.depthwise) {
      vfmadd231ps(Sum(sources, 0, s, chain), Block(0), ptr[src_ + src + SrcOffset(s)]);
      continue;
    }
    vbroadcastss(Source(), ptr[src_ + src + SrcOffset(s)]);
    for (int b = 0; b < tile_.blocks; ++b)
      vfmadd231ps(Sum(sources, b, s, chain), Source(), Block(b));
  }
}

void WeightsGradientGenerator::JoinChains(const Range& sources) {
  for (int chain = 1; chain < tile_.chains; ++chain) {
    for (int b = 0; b < tile_.blocks; ++b) {
      for (int64_t s = sources.begin; s < sources.begin + sources.size; ++s)
        vaddps(Sum(sources, b, s), Sum(sources, b, s), Sum(sources, b, s, chain));
    }
  }
}

void WeightsGradientGenerator::PutSums(const Range& sources) {
  for (int b = 0; b < tile_.blocks; ++b) {
    for (int64_t s = sources.begin; s < sources.begin + sources.size; ++s)
      vmovups(ptr[weights_ + WeightsOffset(b, s)], Sum(sources, b, s));
  }
}

// Lanes after the last output channel are left as they are.
void WeightsGradientGenerator::AddSums(const Range& sources) {
  const bool has_tail = tile_.tail_lanes != 0;
  const Xbyak::Xmm before = Block(1);  // Block(0) holds the mask of the tail
  if (has_tail) tail_.Set(tile_.tail_lanes);
  for (int b = 0; b < tile_.blocks; ++b) {
    const bool masked = has_tail && b == tile_.blocks - 1;
    for (int64_t s = sources.begin; s < sources.begin + sources.size; ++s) {
      const int at = WeightsOffset(b, s);
      tail_.Load(before, ptr[weights_ + at], masked);
      vaddps(before, before, Sum(sources, b, s));
      tail_.Store(ptr[weights_ + at], before, masked);
    }
  }
}

}  // namespace tilewire::convolution
