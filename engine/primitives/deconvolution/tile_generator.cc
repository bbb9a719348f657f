// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/deconvolution/tile_generator.h"

#include <algorithm>

#include "engine/kernels/tiles/block_unit.h"

namespace tilewire::deconvolution {

int TileGenerator::MaxPixels(const VectorUnit& unit, const PostOps& post_ops) {
  const int needed = std::max(kMaxBlocks + 1, AccumulatorEpilogue::ScratchCount(post_ops));
  return (unit.registers() - needed) / kMaxBlocks;
}

void TileGenerator::EmitTile() {
  PrefetchDst();
  ZeroSums();
  EmitTaps();
  FinishSums(/*zero_tail=*/true);
}

// Rows of dst are written with gaps, where other phases lie; the cache does not see them coming.
void TileGenerator::PrefetchDst() {
  const EpilogueConfig& tile = config_.epilogue;
  for (int b = 0; b < tile.blocks; ++b) {
    for (int p = 0; p < tile.pixels; ++p) {
      const int64_t offset = b * tile.dst_block_bytes + p * tile.dst_pixel_bytes;
      prefetchw(ptr[dst_ + static_cast<int>(offset)]);
    }
  }
}

// A register of an output block, as wide as the block's channels need (block_unit.h).
Xbyak::Xmm TileGenerator::OfBlock(int block, int index) const {
  const EpilogueConfig& tile = config_.epilogue;
  return UnitOfBlock(tile.unit, block == tile.blocks - 1 ? tile.tail_lanes : 0).Vector(index);
}

void TileGenerator::EmitBlock(int channels) {
  const int lanes = config_.epilogue.unit.lanes(), blocks = config_.epilogue.blocks;
  for (int ic = 0; ic < channels; ++ic) {
    for (int b = 0; b < blocks; ++b) {
      const int64_t offset = b * config_.weights_oc_block_bytes + ic * lanes * 4;
      vmovups(OfBlock(b, Tile() + b), ptr[weights_ + static_cast<int>(offset)]);
    }
    AddProducts(/*chain=*/0, /*pairs=*/false, Tile(), Tile() + blocks,
                [&](int pixel) { return src_ + (pixel * lanes + ic) * 4; });
  }
}

}  // namespace tilewire::deconvolution
