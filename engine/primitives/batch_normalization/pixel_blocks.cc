// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/batch_normalization/pixel_blocks.h"

#include <limits>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"

namespace tilewire::batch_normalization {
namespace {

// Code steps over four pixels at most.
constexpr int64_t kFarthest = std::numeric_limits<int32_t>::max() / (4 * sizeof(float));

// 8 or 16; 0 where channels lie otherwise.
int64_t LanesOf(const MemoryDesc& md) {
  for (int64_t lanes : {16, 8}) {
    if (md.inner_blocks() == InnerBlocks{{1, lanes}}) return lanes;
    if (md.IsPlain() && md.stride(1) == 1 && md.dim(1) % lanes == 0) return lanes;
  }
  return 0;
}

}  // namespace

absl::StatusOr<PixelBlocks> PixelBlocks::Create(const MemoryDesc& md) {
  if (md.ElementCount() == 0) return Unimplemented("has no elements");
  PixelBlocks blocks;
  blocks.lanes_ = LanesOf(md);
  if (blocks.lanes_ == 0) {
    return Unimplemented("channels do not lie in blocks of 8 or 16: ", md.ToString());
  }
  blocks.blocks_ = md.padded_dims()[1] / blocks.lanes_;
  blocks.block_stride_ = md.IsPlain() ? blocks.lanes_ : md.stride(1);
  ABSL_RETURN_IF_ERROR(blocks.SetPixels(md));
  blocks.pieces_of_image_ = DivUp(blocks.pixels_, kPixelsOfPiece);
  return blocks;
}

absl::Status PixelBlocks::SetPixels(const MemoryDesc& md) {
  for (int d = md.rank() - 1; d >= 0; --d) {
    if (d == 1 || md.dim(d) == 1) continue;
    if (pixels_ == 1) {
      pixel_stride_ = md.stride(d);
      pixels_ = md.dim(d);
    } else if (md.stride(d) == pixels_ * pixel_stride_) {
      pixels_ *= md.dim(d);
    } else if (d == 0) {
      images_ = md.dim(0);
      image_stride_ = md.stride(0);
    } else {
      return Unimplemented("pixels of an image are at several distances");
    }
  }
  if (pixel_stride_ > kFarthest) return Unimplemented("pixels are too far apart");
  return absl::OkStatus();
}

PixelBlocks::Piece PixelBlocks::PieceAt(int64_t item) const {
  if (block_stride_ < pixel_stride_)  // blocks of a pixel follow each other
    return PieceOf(item % blocks_, item / blocks_);
  const int64_t piece = item % pieces_of_image_, rest = item / pieces_of_image_;
  return PieceOf(rest % blocks_, rest / blocks_ * pieces_of_image_ + piece);
}

PixelBlocks::Piece PixelBlocks::PieceOf(int64_t block, int64_t index) const {
  const int64_t image = index / pieces_of_image_, piece = index % pieces_of_image_;
  const int64_t offset =
      image * image_stride_ + block * block_stride_ + piece * kPixelsOfPiece * pixel_stride_;
  return {block, index, offset, image * pixels_ + piece * kPixelsOfPiece, PixelsOf(index)};
}

}  // namespace tilewire::batch_normalization
