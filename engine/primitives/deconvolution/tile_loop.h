// SPDX-License-Identifier: Apache-2.0
//
// Generates the tiles of a row of dst, from left to right, or a tile of a column, each from a list
// of taps. The same taps reach all outputs of all tiles, and each tap takes neighbouring pixels of
// src, in a row or in a column as the outputs are, to neighbouring outputs. A generator says what a
// tile does with a block of input channels, and how it ends.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_TILE_LOOP_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_TILE_LOOP_H_

#include <cstdint>

#include "engine/jit/loop_count.h"
#include "engine/kernels/tiles/accumulator_tile.h"

namespace tilewire::deconvolution {

struct TapArgs {
  const float *src, *weights;  // the first tile's first pixel, the tap's first channels
};

struct TileArgs {
  const TapArgs* taps;
  int64_t tap_count;  // may be 0
  jit::LoopCount tile_count;
  const float* bias;  // of the first output channel
  float* dst;         // of the first tile
};

using TileFunction = void (*)(const TileArgs*);

struct TileLoopConfig {
  int64_t ic_blocks = 1;  // full ones
  int tail_channels = 0;  // of the input block after them, if there is one
  int64_t src_block_bytes = 0, weights_block_bytes = 0;  // from input block to input block
  int64_t src_tile_bytes = 0, dst_tile_bytes = 0;        // from tile to tile
};

class TileLoop : public AccumulatorTile {
 protected:
  TileLoop(absl::string_view name, const EpilogueConfig& epilogue, const TileLoopConfig& loop)
      : AccumulatorTile(name, epilogue), loop_(loop) {}

  // A tile, from its first product to its store.
  virtual void EmitTile() = 0;
  // The products of the first channels of an input block.
  virtual void EmitBlock(int channels) = 0;
  virtual void EmitTables() { epilogue_.EmitTables(); }

  // The products of all taps of the tile, or of its pixels from `first_pixel` on.
  void EmitTaps(int64_t first_pixel = 0);

  // Registers. src_ and weights_ are those of an input block.
  const Xbyak::Reg64 tap_ = r8, taps_left_ = r9, src_ = r10, weights_ = r11, blocks_left_ = rcx;
  const Xbyak::Reg64 tiles_left_ = rbx, tile_src_ = rbp;  // tile_src_: bytes after the first tile

 private:
  void Emit() final;

  const TileLoopConfig loop_;
};

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_TILE_LOOP_H_
