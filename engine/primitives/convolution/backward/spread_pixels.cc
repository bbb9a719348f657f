// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/spread_pixels.h"

#include <emmintrin.h>

#include <cstdint>

#include "engine/base/checked_math.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kQuad = 4;  // floats that are written at once
alignas(64) constexpr float kZeroPixel[16] = {};

bool BeginsQuad(const float* address) {
  return reinterpret_cast<uintptr_t>(address) % (kQuad * sizeof(float)) == 0;
}

void WritePixel(const float* from, int64_t lanes, bool streams, float* to) {
  for (int64_t lane = 0; lane < lanes; lane += kQuad) {
    const __m128 quad = _mm_loadu_ps(from + lane);
    streams ? _mm_stream_ps(to + lane, quad) : _mm_storeu_ps(to + lane, quad);
  }
}

}  // namespace

bool LeavesPixels(const Geometry& geometry) {
  const Spatial ones = {1, 1, 1};
  if (geometry.kernel != ones || geometry.stride == ones || geometry.pad != Spatial{0, 0, 0})
    return false;
  for (int d = 0; d < 3; ++d) {
    if ((geometry.out[d] - 1) * geometry.stride[d] >= geometry.in[d]) return false;
  }
  return true;
}

void SpreadPixels::Run(const float* dense, float* diff_src, const threading::Team& team) const {
  const int64_t blocks = DivUp(geometry_.groups * geometry_.ic, lanes_);
  team.ParallelFor(geometry_.batch * blocks, [&](int64_t index) {
    const int64_t image = index / blocks, block = index % blocks;
    SpreadBlock(dense + image * dense_.image + block * dense_.block,
                diff_src + image * diff_src_.image + block * diff_src_.block);
    if (streams_) _mm_sfence();  // before other threads are told that the block has ended
  });
}

void SpreadPixels::SpreadBlock(const float* dense, float* diff_src) const {
  const Spatial &in = geometry_.in, &out = geometry_.out, &stride = geometry_.stride;
  for (int64_t depth = 0; depth < in[0]; ++depth) {
    for (int64_t row = 0; row < in[1]; ++row) {
      const bool is_read = depth % stride[0] == 0 && depth / stride[0] < out[0] &&
                           row % stride[1] == 0 && row / stride[1] < out[1];
      const float* const from =
          dense + depth / stride[0] * dense_.spatial[0] + row / stride[1] * dense_.spatial[1];
      SpreadRow(is_read ? from : nullptr,
                diff_src + depth * diff_src_.spatial[0] + row * diff_src_.spatial[1]);
    }
  }
}

// `dense` is null for a row that is not read.
void SpreadPixels::SpreadRow(const float* dense, float* diff_src) const {
  if (adds_) {
    if (dense != nullptr) AddRow(dense, diff_src);
    return;
  }
  const int64_t step = diff_src_.spatial[2], stride = geometry_.stride[2];
  const int64_t read = dense == nullptr ? 0 : geometry_.out[2];
  const bool streams = streams_ && BeginsQuad(diff_src) && step % kQuad == 0;
  for (int64_t p = 0; p < geometry_.in[2]; ++p) {
    const bool is_read = p % stride == 0 && p / stride < read;
    const float* const from = is_read ? dense + p / stride * dense_.spatial[2] : kZeroPixel;
    WritePixel(from, lanes_, streams, diff_src + p * step);
  }
}

void SpreadPixels::AddRow(const float* dense, float* diff_src) const {
  for (int64_t p = 0; p < geometry_.out[2]; ++p) {
    float* const to = diff_src + p * geometry_.stride[2] * diff_src_.spatial[2];
    const float* const from = dense + p * dense_.spatial[2];
    for (int64_t lane = 0; lane < lanes_; lane += kQuad)
      _mm_storeu_ps(to + lane, _mm_add_ps(_mm_loadu_ps(from + lane), _mm_loadu_ps(to + lane)));
  }
}

}  // namespace tilewire::convolution
