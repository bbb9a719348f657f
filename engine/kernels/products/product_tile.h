// SPDX-License-Identifier: Apache-2.0
//
// Generates one tile of a product of rows and packed weights (packed_product.h): `rows` rows times
// `blocks` vectors of output channels.
//
// Every element of the result is the sum of two chains, over even and over odd k, added at the end:
// two chains hide the latency of the multiply-add when a tile has one row, and the order of
// additions does not depend on how many rows a tile has.
#ifndef ENGINE_KERNELS_PRODUCTS_PRODUCT_TILE_H_
#define ENGINE_KERNELS_PRODUCTS_PRODUCT_TILE_H_

#include <cstddef>
#include <cstdint>

#include "engine/kernels/tiles/accumulator_tile.h"

namespace tilewire {

struct ProductTileConfig {
  int64_t k = 0;               // elements of a row, padding included
  bool pairs = false;          // an element is a pair of numbers of bf16 (bf16_rounding.h)
  int64_t src_row_bytes = 0;   // from row to row
  bool fetches_ahead = false;  // calls bring weights that later ones read into the second cache
  EpilogueConfig epilogue;     // unit, blocks, pixels (rows), strides of dst, bias, post-ops
};

struct ProductTileArgs {
  const float* src;      // of the tile's first row
  const float* weights;  // of the tile's first block
  const float* bias;     // of the tile's first output channel
  float* dst;
  // Where weights are fetched ahead: each step of the loop asks for the line at `ahead`, and
  // advances it by so many bytes.
  const std::byte* ahead;
  int64_t ahead_bytes;
};

class ProductTile final : public AccumulatorTile {
 public:
  static constexpr int kChains = 2;  // a step of the loop adds one k to each
  static constexpr int kMaxBlocks = 4, kMaxRows = 6, kMaxVectors = 12;
  using Function = void (*)(const ProductTileArgs*);
  ProductTile(absl::string_view name, const ProductTileConfig& config);

  // The size of a whole tile.
  struct Size {
    int blocks, rows;
  };
  // For products of up to so many rows: few of them are one tile high, so that weights are read
  // once. Leaves enough registers for the post-ops.
  static Size SizeFor(const VectorUnit& unit, const PostOps& post_ops, int64_t most_rows);

 private:
  void Emit() override;
  void EmitPointers();
  void EmitSums();
  void EmitStep(int chain);

  const ProductTileConfig config_;

  // Registers: weights_, rows_ and ahead_ advance with k. dst_ and bias_ are loaded after the sums.
  const Xbyak::Reg64 ahead_ = dst_, ahead_bytes_ = bias_;
  const Xbyak::Reg64 left_ = rcx;  // pairs of k not yet added
  const Xbyak::Reg64 weights_[kMaxBlocks] = {r8, r9, r10, r11};
  const Xbyak::Reg64 rows_[kMaxRows] = {r12, r13, r14, r15, rbx, rbp};
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_PRODUCT_TILE_H_
