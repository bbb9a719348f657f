// SPDX-License-Identifier: Apache-2.0
//
// The work of a direct convolution as a grid of pieces (image, channel group, groups of output
// blocks, tiles of pixels), and what each row and tile of pixels adds to the pointers. Offsets are
// in the unit of the strides that the grid is made from. Immutable; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_WORK_GRID_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_WORK_GRID_H_

#include <cstdint>
#include <vector>

#include "engine/kernels/tiles/tap_loops.h"
#include "engine/primitives/convolution/direct/tiling.h"
#include "engine/primitives/convolution/direct/weights_prefetch.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

class WorkGrid {
 public:
  struct Piece {
    int64_t image = 0, group = 0;
    Range oc_groups;
    Range units;                // tiles, counted over all rows of an image
    int64_t row = 0, tile = 0;  // of the first of them
  };

  // `tap_weights`: the distance from tap to tap of the weights.
  WorkGrid(const Geometry& geometry, Tiling tiling, const WorkSize& work,
           const Spatial& src_strides, const Spatial& dst_strides, int64_t tap_weights);

  const Tiling& tiling() const { return tiling_; }
  int64_t units_per_image() const { return rows_.size() * tiles_.size(); }
  // A thread that is alone takes several neighbouring pieces at once where these are small: each
  // begins by reading the weights anew.
  int64_t PiecesAtOnce(int threads) const;
  int64_t PiecesPerImage(int64_t at_once) const;
  Piece PieceAt(int64_t index, int64_t at_once) const;
  // A piece with `units` of those of `piece`, from number `first` of it on, or as many as it has.
  Piece PartOf(const Piece& piece, int64_t first, int64_t units) const;

  // The weights of all images, and the order in which they are read; distances are bytes.
  struct WeightsOrder {
    const std::byte* begin = nullptr;
    int64_t group = 0, oc_block = 0, ic_block = 0;
    int64_t ic_blocks = 1;  // of an output block
    int64_t chunk = 1;      // ic_blocks that are read before those of the next output blocks
    int64_t images = 1;
  };
  // The weights that are read after the chunk at `ic_block` of a group of output blocks; none at
  // the very end.
  WeightsPrefetch WeightsAfter(const Piece& piece, int64_t oc_group, int64_t ic_block,
                               const WeightsOrder& order) const;

  // Calls a function of `functions` (one per tile) for each unit of a piece. `position` holds the
  // pointers without the offsets of row and tile, and the blocks of the reduction.
  template <typename Args>
  void RunUnits(const Args& position, void (*const* functions)(const Args*), const Piece& piece,
                WeightsPrefetch ahead) const {
    const void* reached = ahead.begin();
    const int64_t tiles = tiles_.size();
    int64_t tile = piece.tile;
    const Row* row = &rows_[piece.row];
    Args args = position;
    for (int64_t left = piece.units.size; left > 0; --left) {
      reached = ahead.Next(reached, position.weights);
      args.src = position.src + row->src + tiles_[tile].src;
      args.weights = position.weights + row->weights;
      args.dst = position.dst + row->dst + tiles_[tile].dst;
      if constexpr (requires { args.pixel_compensation; }) {
        if (position.pixel_compensation != nullptr)
          args.pixel_compensation =
              position.pixel_compensation + (row - rows_.data()) * width_ + tiles_[tile].first;
      }
      args.loops = {.full_blocks = row->height_taps == 0 ? 0 : position.loops.full_blocks,
                    .tail_blocks = row->height_taps == 0 ? 0 : position.loops.tail_blocks,
                    .depth_taps = row->depth_taps,
                    .height_taps = row->height_taps,
                    .ahead = reached};
      functions[tile](&args);
      reached = args.loops.ahead;
      if (++tile < tiles) continue;
      tile = 0;
      ++row;
    }
  }

 private:
  void FindFirstUnit(Piece* piece) const;

  // The offsets that a row and a tile add, and how many taps lie inside src for the row.
  struct Row {
    int64_t src, weights, dst;
    int64_t depth_taps, height_taps;  // both 0 when there are none
  };
  struct Tile {
    int64_t src, dst;
    int64_t first;  // pixel of its row
  };

  Tiling tiling_;
  WorkSize work_;
  int64_t groups_ = 0, unit_pieces_ = 0, oc_pieces_ = 0;
  int64_t width_ = 0;  // of dst
  std::vector<Row> rows_;
  std::vector<Tile> tiles_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_WORK_GRID_H_
