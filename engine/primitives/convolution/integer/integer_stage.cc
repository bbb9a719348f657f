// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/integer/integer_stage.h"

#include <algorithm>
#include <cstring>

#include "engine/base/check.h"
#include "engine/base/checked_math.h"
#include "engine/memory/separable_offsets.h"
#include "engine/threading/ranges.h"

namespace tilewire::convolution {
namespace {

template <typename Word>
Word Load(const uint8_t* from) {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

void CopyFlipped(const uint8_t* from, uint8_t* to, int64_t count, uint8_t flip) {
  if (flip == 0) {
    std::memcpy(to, from, count);
    return;
  }
  const uint64_t flips = flip * 0x0101010101010101ull;
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const uint64_t word = Load<uint64_t>(from + i) ^ flips;
    std::memcpy(to + i, &word, sizeof(word));
  }
  for (; i < count; ++i) to[i] = from[i] ^ flip;
}

}  // namespace

IntegerStage::IntegerStage(const MemoryDesc& src, const Geometry& geometry, uint8_t flip,
                           int64_t step)
    : geometry_(geometry),
      strides_(SpatialStrides(src, 2)),
      flip_(flip),
      group_bytes_(RoundUp(geometry.ic, step)),
      pixel_bytes_(geometry.groups * group_bytes_) {
  for (int d = 0; d < 3; ++d) {
    size_[d] = (geometry.out[d] - 1) * geometry.stride[d] +
               (geometry.kernel[d] - 1) * geometry.tap_step[d] + 1;
  }
}

absl::StatusOr<IntegerStage> IntegerStage::Create(const MemoryDesc& src, const Geometry& geometry,
                                                  uint8_t flip, int64_t step) {
  TILEWIRE_CHECK(step > 0 && step % kQuad == 0, "a step takes whole quads");
  IntegerStage stage(src, geometry, flip, step);
  const auto bytes =
      CheckedProduct({stage.size_[0], stage.size_[1], stage.size_[2], stage.pixel_bytes_, 2});
  if (!bytes) return ResourceExhausted("the padded copy of src is too large");
  const SeparableOffsets offsets(src);
  for (int64_t group = 0; group < geometry.groups; ++group) {
    for (int64_t c = 0; c < stage.group_bytes_; ++c) {
      stage.channels_.push_back(offsets.At(1, group * geometry.ic + std::min(c, geometry.ic - 1)));
    }
  }
  bool side_by_side = true;
  for (int64_t c = 0; c < geometry.groups * geometry.ic; ++c)
    side_by_side = side_by_side && offsets.At(1, c) == c;
  constexpr int64_t kLongGroup = 16;
  stage.dense_ = side_by_side && geometry.ic == stage.group_bytes_;
  stage.short_pixels_ = side_by_side && stage.pixel_bytes_ == kQuad;
  stage.long_groups_ = side_by_side && geometry.ic >= kLongGroup;
  return stage;
}

Geometry IntegerStage::StagedGeometry() const {
  Geometry staged = geometry_;
  staged.ic = group_bytes_ / kQuad;
  staged.in = size_;
  staged.pad = {0, 0, 0};
  return staged;
}

ByteStrides IntegerStage::StagedStrides() const {
  ByteStrides strides;
  strides.group = group_bytes_;
  strides.spatial = {size_[1] * size_[2] * pixel_bytes_, size_[2] * pixel_bytes_, pixel_bytes_};
  return strides;
}

void IntegerStage::Run(const std::byte* image, std::byte* to, const threading::Team& team) const {
  const auto* from = reinterpret_cast<const uint8_t*>(image);
  const int64_t row_bytes = size_[2] * pixel_bytes_;
  // Rows are short: several at once.
  constexpr int64_t kBytesAtOnce = 16384;
  const int64_t rows = size_[0] * size_[1];
  const int64_t at_once = threading::ItemsAtOnce(kBytesAtOnce, row_bytes);
  threading::ParallelForItems(team, rows, at_once, [&](int64_t row) {
    RunRow(from, reinterpret_cast<uint8_t*>(to) + row * row_bytes, row / size_[1], row % size_[1]);
  });
}

void IntegerStage::RunRow(const uint8_t* image, uint8_t* to, int64_t depth, int64_t height) const {
  const int64_t d = depth - geometry_.pad[0], h = height - geometry_.pad[1];
  const int64_t row_bytes = size_[2] * pixel_bytes_;
  const bool inside = d >= 0 && d < geometry_.in[0] && h >= 0 && h < geometry_.in[1];
  const int64_t left = inside ? std::min(geometry_.pad[2], size_[2]) : size_[2];
  const int64_t count = std::min(geometry_.in[2], size_[2] - left);
  std::memset(to, flip_, left * pixel_bytes_);
  if (count <= 0) return;
  to += left * pixel_bytes_;
  CopyPixels(image + d * strides_[0] + h * strides_[1], to, count);
  std::memset(to + count * pixel_bytes_, flip_, row_bytes - (left + count) * pixel_bytes_);
}

void IntegerStage::CopyPixels(const uint8_t* from, uint8_t* to, int64_t count) const {
  if (dense_ && strides_[2] == pixel_bytes_)
    return CopyFlipped(from, to, count * pixel_bytes_, flip_);
  int64_t w = 0;
  if (dense_) {
    for (; w < count; ++w)
      CopyFlipped(from + w * strides_[2], to + w * pixel_bytes_, pixel_bytes_, flip_);
  } else if (long_groups_) {
    for (; w < count; ++w) CopyGroups(from + w * strides_[2], to + w * pixel_bytes_);
  } else if (short_pixels_) {
    // Bytes after a pixel's channels meet weights of zero; they are read as far as the row goes.
    const uint32_t flips = flip_ * 0x01010101u;
    const int64_t end = (count - 1) * strides_[2] + geometry_.ic;
    for (; w < count && w * strides_[2] + kQuad <= end; ++w) {
      const uint32_t word = Load<uint32_t>(from + w * strides_[2]) ^ flips;
      std::memcpy(to + w * kQuad, &word, sizeof(word));
    }
  }
  for (; w < count; ++w) {
    const uint8_t* pixel = from + w * strides_[2];
    for (int64_t i = 0; i < pixel_bytes_; ++i)
      to[w * pixel_bytes_ + i] = pixel[channels_[i]] ^ flip_;
  }
}

// Bytes after a group's channels meet weights of zero.
void IntegerStage::CopyGroups(const uint8_t* from, uint8_t* to) const {
  for (int64_t group = 0; group < geometry_.groups; ++group) {
    CopyFlipped(from, to, geometry_.ic, flip_);
    std::memset(to + geometry_.ic, flip_, group_bytes_ - geometry_.ic);
    from += geometry_.ic;
    to += group_bytes_;
  }
}

}  // namespace tilewire::convolution
