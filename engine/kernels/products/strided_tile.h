// SPDX-License-Identifier: Apache-2.0
//
// Generates one tile of a matrix product: some rows of src times some vectors of columns of
// weights, over all of K, one chain of additions per element, or one for each part of K. src may
// have any strides, weights any between their rows. The bits of an element do not depend on which
// tile computes it, nor, where they are one chain, on the parts that K is cut into.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_KERNELS_PRODUCTS_STRIDED_TILE_H_
#define ENGINE_KERNELS_PRODUCTS_STRIDED_TILE_H_

#include <cstdint>
#include <vector>

#include "engine/jit/tail_mask.h"
#include "engine/kernels/tiles/accumulator_tile.h"

namespace tilewire {

struct StridedTileConfig {
  int64_t k = 0;  // 0: calls say how many, and whether a tile begins or ends with them
  int64_t src_row_bytes = 0, src_k_bytes = 0;
  int64_t weights_k_bytes = 0;  // vectors of a row of weights follow each other
  EpilogueConfig epilogue;      // blocks, pixels (rows), lanes, strides of dst, bias, post-ops
  // The bytes from row to row of matrices whose sum is added after the post-ops, and how many of
  // the last vector's columns they have; 0: all of them.
  std::vector<int64_t> addend_row_bytes = {};
  int addend_tail = 0;
  // How many of the last vector's columns a row of weights has; 0: all lanes may be read.
  int weights_tail = 0;
  int weights_ahead_bytes = 0;  // of its own row each vector of weights is fetched ahead, if not 0
  bool adds_parts = false;      // the sums before a part are added to its own, which begin at 0
  bool streams = false;  // f32 vectors of dst, which are whole lines, are written past the caches
};

struct StridedTileArgs {
  static constexpr int kMostAddends = 2;

  const float *src, *weights, *bias;  // of the tile's first row and column
  float* dst;
  const float* addends[kMostAddends] = {};
  // Where the configuration leaves k open: the number of products; the sums before
  // them, null for none; and where the sums go, null where they end in dst. Both hold the tile's
  // vectors one after the other. `chain_before`: where parts are added, the sums of this part's
  // products that another call had, null where it begins.
  int64_t k = 0;
  const float* sums_before = nullptr;
  float* sums_after = nullptr;
  const float* chain_before = nullptr;
};

class StridedTile final : public AccumulatorTile {
 public:
  using Function = void (*)(const StridedTileArgs*);
  StridedTile(absl::string_view name, const StridedTileConfig& config);

  // The most rows, at most `rows`, of a tile of `blocks` vectors of columns that leave registers
  // for the post-ops and stores of a tail; with `masks_weights` also for weights that have one.
  static int MaxRows(const VectorUnit& unit, const PostOps& post_ops, int blocks, int rows,
                     bool masks_weights = false);

 private:
  void Emit() override;
  void EmitBegin();
  void AddSumsBefore();
  void EmitSums();
  void EmitLoop(int unroll);
  void EmitStep(int step);
  void EmitStop();
  void StreamSums();
  void AddAddends();
  void LoadAddend(int i, int block, int row, const Xbyak::Xmm& to);

  const StridedTileConfig config_;

  // Registers. Vectors: the tile's sums, then weights of one k, then an element of src.
  const Xbyak::Reg64 src_ = r8, weights_ = r9;  // advance with k
  const Xbyak::Reg64 left_ = rcx;
  const Xbyak::Reg64 addends_[StridedTileArgs::kMostAddends] = {src_, weights_};  // after the sums
  jit::TailMask addend_tail_;
  jit::TailMask weights_tail_;  // without opmasks in the register after the element of src
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_STRIDED_TILE_H_
