// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/weights_gradient_bands.h"

#include <algorithm>

#include "engine/base/checked_math.h"

namespace tilewire::convolution {
namespace {

// Parts of the first and of the second cache.
constexpr int64_t kBandBytes = 26 * 1024, kBandBytesOfTaps = 29 * 1024;
constexpr int64_t kBlocksBytes = 128 * 1024;
constexpr int64_t kFewestSrcBlocks = 4;  // of src while a few of diff_dst stay in the first cache

// The part of a block of src that belongs to a pixel.
int64_t SrcPixelBytes(const WeightsGradientProblem& problem) {
  if (problem.src.channel == 1) return problem.unit.bytes();
  return std::min<int64_t>(problem.geometry.ic, problem.unit.lanes()) * kFloatBytes;
}

// The size of parts as equal as they can be, of as many as parts of at most `most` would be.
int64_t Evenly(int64_t all, int64_t most) { return DivUp(all, DivUp(all, most)); }

}  // namespace

WeightsGradientBands::WeightsGradientBands(const WeightsGradientProblem& problem, int blocks)
    : geometry_(problem.geometry), src_(problem.src), dst_(problem.dst) {
  const Spatial &stride = geometry_.stride, &out = geometry_.out;
  const int64_t src_bytes =
      SrcPixelBytes(problem) * std::min(stride[1], geometry_.kernel[1]) * stride[2];
  const int64_t pixel_bytes = problem.unit.bytes() * blocks + src_bytes;
  // Two rows of 56 pixels, where each tap takes diff_weights through the first cache once more.
  const int64_t band_bytes = geometry_.kernel[1] > 1 ? kBandBytesOfTaps : kBandBytes;
  const int64_t pixels = std::max<int64_t>(1, band_bytes / pixel_bytes);
  pixels_ = Evenly(out[2], pixels);
  rows_ = Evenly(out[1], std::clamp<int64_t>(pixels / out[2], 1, out[1]));
  blocks_in_cache_ = std::max(kFewestSrcBlocks, kBlocksBytes / (rows_ * pixels_ * src_bytes));
}

int64_t WeightsGradientBands::OfImage() const {
  return geometry_.out[0] * DivUp(geometry_.out[1], rows_) * DivUp(geometry_.out[2], pixels_);
}

WeightsGradientBands::Band WeightsGradientBands::At(int64_t index) const {
  const Spatial& out = geometry_.out;
  const int64_t across = DivUp(out[2], pixels_), down = DivUp(out[1], rows_);
  const int64_t pixel = index % across * pixels_, row = index / across % down * rows_;
  const int64_t depth = index / across / down;
  return {.image = depth / out[0],
          .depth = depth % out[0],
          .rows = {row, std::min(out[1], row + rows_)},
          .pixels = {pixel, std::min(out[2], pixel + pixels_)}};
}

WeightsGradientBands::Distance WeightsGradientBands::ToNext(int64_t index) const {
  const Distance here = BeginOf(At(index)), next = BeginOf(At(index + 1));
  return {next.src - here.src, next.dst - here.dst};
}

WeightsGradientBands::Distance WeightsGradientBands::BeginOf(const Band& band) const {
  const Spatial first = {band.depth, band.rows.begin, band.pixels.begin};
  Distance begin = {band.image * src_.image, band.image * dst_.image};
  for (int d = 0; d < 3; ++d) {
    begin.src += first[d] * geometry_.stride[d] * src_.spatial[d];
    begin.dst += first[d] * dst_.spatial[d];
  }
  return begin;
}

}  // namespace tilewire::convolution
