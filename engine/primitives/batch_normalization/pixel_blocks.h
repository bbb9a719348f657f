// SPDX-License-Identifier: Apache-2.0
//
// A tensor as blocks of 8 or 16 neighbouring channels, each a run of pixels:
//
//   nChw8c, nChw16c      blocks as they lie
//   nhwc                 of a multiple of 8 channels: blocks of 16 if they divide it, else of 8
//
// Runs are cut into pieces of up to 256 pixels, so that a piece is read from the first cache when
// it is read again. Cuts depend on the layout alone. An immutable value; thread-safe.
#ifndef ENGINE_PRIMITIVES_BATCH_NORMALIZATION_PIXEL_BLOCKS_H_
#define ENGINE_PRIMITIVES_BATCH_NORMALIZATION_PIXEL_BLOCKS_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/base/checked_math.h"
#include "engine/memory/memory_desc.h"
#include "engine/threading/ranges.h"
#include "engine/threading/stop.h"

namespace tilewire::batch_normalization {

class PixelBlocks {
 public:
  static constexpr int64_t kLeastLanes = 8, kMostLanes = 16;

  struct Piece {
    int64_t block, index;  // the index counts the pieces of a block
    int64_t offset;        // of its first element
    int64_t first_pixel;   // among those of all images
    int64_t pixels;
  };

  // kUnimplemented  channels do not lie in such blocks, pixels of an image are at several distances
  //                 or too far apart for code, there are no elements
  static absl::StatusOr<PixelBlocks> Create(const MemoryDesc& md);

  int64_t lanes() const { return lanes_; }    // channels of a block, with those that pad
  int64_t blocks() const { return blocks_; }  // with the last, which padding may complete
  int64_t pieces() const { return images_ * pieces_of_image_; }  // of a block
  int64_t pixels() const { return images_ * pixels_; }
  int64_t pixel_stride() const { return pixel_stride_; }  // elements to the next pixel
  int64_t PixelsOf(int64_t index) const {                 // in a piece of any block
    return std::min(kPixelsOfPiece, pixels_ - index % pieces_of_image_ * kPixelsOfPiece);
  }

  // Calls body(piece) for all pieces of all blocks, about in the order of memory.
  template <typename Body>
  void ForEachPiece(const threading::Team& team, const Body& body) const {
    const int64_t at_once =
        threading::ItemsAtOnce(kPixelsOfTask, std::min(pixels_, kPixelsOfPiece));
    threading::ParallelForItems(team, blocks_ * pieces(), at_once,
                                [&](int64_t item) { body(PieceAt(item)); });
  }

  // Calls first(piece) for all pieces of a block, then between(block), then second(piece) for all
  // of them. Where pixels of a block are neighbours in memory and blocks keep all threads busy, a
  // block is done before the next one, its last piece first the second time: what was read last is
  // in a cache still.
  template <typename First, typename Between, typename Second>
  void ForEachPieceTwice(const threading::Team& team, const First& first, const Between& between,
                         const Second& second) const {
    if (!GoesByBlocks(team.threads())) {
      ForEachPiece(team, first);
      team.ParallelFor(blocks_, between);
      return ForEachPiece(team, second);
    }
    team.ParallelFor(blocks_, [&](int64_t block) {
      for (int64_t i = 0; i < pieces() && !threading::Stopped(); ++i) first(PieceOf(block, i));
      between(block);
      for (int64_t i = pieces() - 1; i >= 0 && !threading::Stopped(); --i)
        second(PieceOf(block, i));
    });
  }

 private:
  bool GoesByBlocks(int64_t threads) const {
    return block_stride_ > pixel_stride_ && 9 * blocks_ >= 8 * threads * DivUp(blocks_, threads);
  }
  static constexpr int64_t kPixelsOfPiece = 256, kPixelsOfTask = 1024;

  // Pixels at one distance, images among them where they follow each other likewise.
  absl::Status SetPixels(const MemoryDesc& md);
  Piece PieceAt(int64_t item) const;
  Piece PieceOf(int64_t block, int64_t index) const;

  int64_t lanes_ = 0, blocks_ = 0, block_stride_ = 0;
  int64_t images_ = 1, image_stride_ = 0;
  int64_t pixels_ = 1, pixel_stride_ = 0;
  int64_t pieces_of_image_ = 1;
};

}  // namespace tilewire::batch_normalization

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_PIXEL_BLOCKS_H_
