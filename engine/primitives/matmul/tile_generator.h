// SPDX-License-Identifier: Apache-2.0
//
// Generates one tile of dst: `rows` of src times `blocks` vectors of columns of weights, over all
// of K, one chain of additions per element. src may have any strides, weights any between their
// rows.
#ifndef ENGINE_PRIMITIVES_MATMUL_TILE_GENERATOR_H_
#define ENGINE_PRIMITIVES_MATMUL_TILE_GENERATOR_H_

#include <cstdint>

#include "engine/kernels/accumulator_tile.h"

namespace tilewire::matmul {

struct TileConfig {
  int64_t k = 0;
  int64_t src_row_bytes = 0, src_k_bytes = 0;
  int64_t weights_k_bytes = 0;  // vectors of a row of weights follow each other
  EpilogueConfig epilogue;      // blocks, pixels (rows), lanes, strides of dst, bias, post-ops
};

struct TileArgs {
  const float *src, *weights, *bias;  // of the tile's first row and column
  float* dst;
};

class TileGenerator final : public AccumulatorTile {
 public:
  using Function = void (*)(const TileArgs*);
  TileGenerator(absl::string_view name, const TileConfig& config);

  // Vectors of columns in a whole tile.
  static constexpr int kBlocks = 3;
  // Rows of a whole tile, with registers left for the post-ops.
  static int MaxRows(const VectorUnit& unit, const PostOps& post_ops);

 private:
  void Emit() override;
  void EmitSteps(int64_t count, int unroll);
  void EmitStep(int step);

  const TileConfig config_;

  // Registers. Vectors: the tile's sums, then weights of one k, then an element of src.
  const Xbyak::Reg64 src_ = r8, weights_ = r9;  // advance with k
  const Xbyak::Reg64 left_ = rcx;
};

}  // namespace tilewire::matmul

#endif  // ENGINE_PRIMITIVES_MATMUL_TILE_GENERATOR_H_
