// SPDX-License-Identifier: Apache-2.0
//
// Generates tiles of dst whose lanes are output channels: `pixels` outputs of a row, `stride`
// apart, times one or two blocks of output channels (tile_loop.h).
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_TILE_GENERATOR_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_TILE_GENERATOR_H_

#include <cstdint>

#include "engine/primitives/deconvolution/tile_loop.h"

namespace tilewire::deconvolution {

struct TileConfig {
  TileLoopConfig loop;
  int64_t weights_oc_block_bytes = 0;  // from output block to output block
  EpilogueConfig epilogue;             // unit, blocks, pixels, strides of dst, bias, post-ops
};

class TileGenerator final : public TileLoop {
 public:
  TileGenerator(absl::string_view name, const TileConfig& config)
      : TileLoop(name, config.epilogue, config.loop), config_(config) {}

  static constexpr int kMaxBlocks = 2;
  // The most outputs of a tile that leave enough registers for the post-ops.
  static int MaxPixels(const VectorUnit& unit, const PostOps& post_ops);

 private:
  void EmitTile() override;
  void EmitBlock(int channels) override;
  void PrefetchDst();
  Xbyak::Xmm OfBlock(int block, int index) const override;

  // Vectors: the tile's sums, then weights of one input channel, then an element of src.
  const TileConfig config_;
};

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_TILE_GENERATOR_H_
