// SPDX-License-Identifier: Apache-2.0
//
// Generates one tile of dst: `pixels` outputs of a row, `stride` apart, times one or two blocks of
// output channels, from a list of taps. The same taps reach all outputs of a tile, and each tap
// takes neighbouring pixels of src to neighbouring outputs.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_TILE_GENERATOR_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_TILE_GENERATOR_H_

#include <cstdint>

#include "engine/kernels/accumulator_tile.h"

namespace tilewire::deconvolution {

struct TapArgs {
  const float *src, *weights;  // the tile's first pixel, the tap's first input and output channel
};

struct TileArgs {
  const TapArgs* taps;
  int64_t tap_count;  // may be 0
  const float* bias;  // of the tile's first output channel
  float* dst;
};

struct TileConfig {
  int64_t ic_blocks = 1;  // full ones
  int tail_channels = 0;  // of the input block after them, if there is one
  int64_t src_block_bytes = 0, weights_ic_block_bytes = 0;  // from input block to input block
  int64_t weights_oc_block_bytes = 0;                       // from output block to output block
  EpilogueConfig epilogue;  // unit, blocks, pixels, strides of dst, bias, post-ops
};

using TileFunction = void (*)(const TileArgs*);

class TileGenerator final : public AccumulatorTile {
 public:
  TileGenerator(absl::string_view name, const TileConfig& config);

  static constexpr int kMaxBlocks = 2;
  // The most outputs of a tile that leave enough registers for the post-ops.
  static int MaxPixels(const VectorUnit& unit, const PostOps& post_ops);

 private:
  void Emit() override;
  void PrefetchDst();
  Xbyak::Xmm Narrow(int block, int index) const;
  void EmitBlock(int channels);

  const TileConfig config_;

  // Registers. Vectors: the tile's sums, then weights of one input channel, then an element of src.
  const Xbyak::Reg64 tap_ = r8, taps_left_ = r9, src_ = r10, weights_ = r11, blocks_left_ = rcx;
};

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_TILE_GENERATOR_H_
