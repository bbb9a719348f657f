// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/depthwise_plane_generator.h"

#include <cstddef>

namespace tilewire::convolution {

void DepthwisePlaneGenerator::Emit() {
  Preamble();
  mov(src_row_, ptr[args_ + offsetof(DepthwisePlaneArgs, src)]);
  mov(dst_row_, ptr[args_ + offsetof(DepthwisePlaneArgs, diff_dst)]);
  mov(src_ahead_, ptr[args_ + offsetof(DepthwisePlaneArgs, src_ahead)]);
  mov(dst_ahead_, ptr[args_ + offsetof(DepthwisePlaneArgs, dst_ahead)]);
  for (int i = 0; i <= Taps(); ++i) plane_.unit.Zero(this, plane_.unit.Vector(i));
  for (const OutputSegment& segment : plane_.rows) {
    Xbyak::Label next;
    mov(rows_, segment.outputs.end - segment.outputs.begin);
    L(next);
    EmitRow(segment.taps);
    add(src_row_, static_cast<int>(plane_.src_row));
    add(dst_row_, static_cast<int>(plane_.dst_row));
    dec(rows_);
    jnz(next, T_NEAR);
  }
  AddSums();
  Postamble();
  if (plane_.tail_lanes != 0) tail_.EmitTable();
}

void DepthwisePlaneGenerator::EmitRow(const TapRange& rows) {
  mov(src_, src_row_);
  mov(dst_, dst_row_);
  for (const OutputSegment& segment : plane_.pixels) EmitPixels(rows, segment);
}

// Two at a time, and the last of an odd number alone.
void DepthwisePlaneGenerator::EmitPixels(const TapRange& rows, const OutputSegment& segment) {
  const int64_t count = segment.outputs.end - segment.outputs.begin;
  const auto emit = [&](int pixels) {
    if (pixels > 1) FetchAhead();
    for (int pixel = 0; pixel < pixels; ++pixel) EmitPixel(rows, segment.taps, pixel);
    add(src_, static_cast<int>(pixels * plane_.src_pixel));
    add(dst_, static_cast<int>(pixels * plane_.dst_pixel));
  };
  if (count >= kPixelsAtOnce) {
    Xbyak::Label next;
    mov(pixels_, count / kPixelsAtOnce);
    L(next);
    emit(kPixelsAtOnce);
    dec(pixels_);
    jnz(next, T_NEAR);
  }
  if (count % kPixelsAtOnce != 0) emit(1);
}

void DepthwisePlaneGenerator::EmitPixel(const TapRange& rows, const TapRange& taps, int pixel) {
  vmovups(Dst(), ptr[dst_ + static_cast<int>(pixel * plane_.dst_pixel)]);
  if (plane_.has_bias) vaddps(BiasSum(), BiasSum(), Dst());
  for (int64_t row = rows.begin; row < rows.end; ++row) {
    for (int64_t tap = taps.begin; tap < taps.end; ++tap) {
      const int64_t at = pixel * plane_.src_pixel + row * plane_.src_tap_row + tap * plane_.src_tap;
      vfmadd231ps(Sum(row, tap), Dst(), ptr[src_ + static_cast<int>(at)]);
    }
  }
}

// A line of each, at the pixel that a window's middle reads.
void DepthwisePlaneGenerator::FetchAhead() {
  const int64_t middle =
      plane_.tap_rows / 2 * plane_.src_tap_row + plane_.taps_of_row / 2 * plane_.src_tap;
  prefetcht0(ptr[src_ + src_ahead_ + static_cast<int>(middle)]);
  prefetcht0(ptr[dst_ + dst_ahead_]);
}

void DepthwisePlaneGenerator::AddSums() {
  const Xbyak::Xmm before = Dst();
  mov(to_, ptr[args_ + offsetof(DepthwisePlaneArgs, diff_weights)]);
  for (int row = 0; row < plane_.tap_rows; ++row) {
    for (int tap = 0; tap < plane_.taps_of_row; ++tap) {
      const int at = static_cast<int>(row * plane_.weights_tap_row + tap * plane_.weights_tap);
      vaddps(before, Sum(row, tap), ptr[to_ + at]);
      vmovups(ptr[to_ + at], before);
    }
  }
  if (!plane_.has_bias) return;
  const bool masked = plane_.tail_lanes != 0;
  if (masked) tail_.Set(plane_.tail_lanes);
  mov(to_, ptr[args_ + offsetof(DepthwisePlaneArgs, diff_bias)]);
  tail_.Load(before, ptr[to_], masked);
  vaddps(before, before, BiasSum());
  tail_.Store(ptr[to_], before, masked);
}

}  // namespace tilewire::convolution
