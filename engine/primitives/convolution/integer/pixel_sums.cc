// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/integer/pixel_sums.h"

#include <algorithm>

#include "engine/kernels/products/byte_sum.h"

namespace tilewire::convolution {
namespace {

int64_t PixelsOf(const Spatial& size) { return size[0] * size[1] * size[2]; }

}  // namespace

int64_t PixelSums::Results() const { return geometry_.groups * PixelsOf(geometry_.out); }

bool PixelSums::IsPointwise() const {
  const Spatial ones = {1, 1, 1};
  return geometry_.kernel == ones && geometry_.stride == ones && geometry_.in == geometry_.out;
}

int64_t PixelSums::ScratchBytes() const {
  if (IsPointwise()) return 0;
  return geometry_.groups * PixelsOf(geometry_.in) * static_cast<int64_t>(sizeof(int32_t));
}

void PixelSums::Run(const std::byte* image, int32_t zero_point, int32_t weights_zero_point,
                    std::byte* scratch, int32_t* to, const threading::Team& team) const {
  const Spatial &in = geometry_.in, &out = geometry_.out;
  const int64_t products = channels_ * PixelsOf(geometry_.kernel);
  const auto finish = [&](int64_t row) {
    int32_t* const sums = to + row * out[2];
    for (int64_t i = 0; i < out[2]; ++i)
      sums[i] = -weights_zero_point * (sums[i] - static_cast<int32_t>(products) * zero_point);
  };
  const int64_t in_rows = geometry_.groups * in[0] * in[1];
  if (IsPointwise()) {
    return team.ParallelFor(in_rows, [&](int64_t row) {
      SumChannels(image, row, to + row * in[2]);
      finish(row);
    });
  }
  auto* const channels = reinterpret_cast<int32_t*>(scratch);
  team.ParallelFor(in_rows, [&](int64_t row) { SumChannels(image, row, channels + row * in[2]); });
  team.ParallelFor(geometry_.groups * out[0] * out[1], [&](int64_t row) {
    SumWindows(channels, row, to + row * out[2]);
    finish(row);
  });
}

void PixelSums::SumChannels(const std::byte* image, int64_t row, int32_t* to) const {
  const Spatial& in = geometry_.in;
  const std::byte* from = image + row / (in[0] * in[1]) * src_.group +
                          row / in[1] % in[0] * src_.spatial[0] + row % in[1] * src_.spatial[1];
  for (int64_t i = 0; i < in[2]; ++i, from += src_.spatial[2])
    to[i] = SumOfBytes(reinterpret_cast<const uint8_t*>(from), channels_, /*is_signed=*/false);
}

void PixelSums::SumWindows(const int32_t* channels, int64_t row, int32_t* to) const {
  const Spatial &in = geometry_.in, &out = geometry_.out, &kernel = geometry_.kernel;
  const int64_t group = row / (out[0] * out[1]);
  const int64_t depth = row / out[1] % out[0] * geometry_.stride[0];
  const int64_t height = row % out[1] * geometry_.stride[1];
  std::fill_n(to, out[2], 0);
  for (int64_t kd = 0; kd < kernel[0]; ++kd) {
    for (int64_t kh = 0; kh < kernel[1]; ++kh) {
      const int64_t d = depth + kd * geometry_.tap_step[0];
      const int64_t h = height + kh * geometry_.tap_step[1];
      const int32_t* const line = channels + ((group * in[0] + d) * in[1] + h) * in[2];
      for (int64_t kw = 0; kw < kernel[2]; ++kw) {
        const int32_t* const from = line + kw * geometry_.tap_step[2];
        for (int64_t i = 0; i < out[2]; ++i) to[i] += from[i * geometry_.stride[2]];
      }
    }
  }
}

}  // namespace tilewire::convolution
