// SPDX-License-Identifier: Apache-2.0
//
// Generates one tile of a packed inner product: `rows` images times `blocks` vectors of output
// channels.
//
// Every element of the result is the sum of two chains, over even and over odd k, added at the end:
// two chains hide the latency of the multiply-add when a tile has one row, and the order of
// additions does not depend on how many rows a tile has.
#ifndef ENGINE_PRIMITIVES_INNER_PRODUCT_TILE_GENERATOR_H_
#define ENGINE_PRIMITIVES_INNER_PRODUCT_TILE_GENERATOR_H_

#include <cstdint>

#include "engine/kernels/accumulator_tile.h"

namespace tilewire::inner_product {

constexpr int kMaxBlocks = 4;

struct TileConfig {
  int64_t k = 0;              // elements of an image, padding included
  int64_t src_row_bytes = 0;  // from image to image
  EpilogueConfig epilogue;    // unit, blocks, pixels (rows), strides of dst, bias, post-ops
};

struct TileArgs {
  const float* src;      // of the tile's first image
  const float* weights;  // of the tile's first block
  const float* bias;     // of the tile's first output channel
  float* dst;
};

class TileGenerator final : public AccumulatorTile {
 public:
  using Function = void (*)(const TileArgs*);
  TileGenerator(absl::string_view name, const TileConfig& config);

  // The most rows of a tile that leave enough registers for the post-ops.
  static int MaxRows(const VectorUnit& unit, const PostOps& post_ops);
  static int MaxBlocks(const VectorUnit& unit) { return unit.registers() >= 32 ? kMaxBlocks : 2; }

 private:
  void Emit() override;
  void EmitPointers();
  void EmitSums();
  void EmitStep(int chain);
  Xbyak::Xmm Sum(int chain, int block, int row) const;

  const TileConfig config_;

  // Registers: weights_ and rows_ advance with k.
  const Xbyak::Reg64 left_ = rcx;  // pairs of k not yet added
  const Xbyak::Reg64 weights_[kMaxBlocks] = {r8, r9, r10, r11};
  const Xbyak::Reg64 rows_[3] = {r12, r13, r14};
};

}  // namespace tilewire::inner_product

#endif  // ENGINE_PRIMITIVES_INNER_PRODUCT_TILE_GENERATOR_H_
