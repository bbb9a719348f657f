// SPDX-License-Identifier: Apache-2.0
//
// Generates one tile of a matrix product whose factors follow each other along K on both sides, as
// where a matrix is multiplied by a transposed one: some rows of src times a vector of columns of
// weights, each of which is a row in memory. A lane of a sum is every 16th product (every 8th with
// 8 lanes), and the lanes are added at the end, in the order of lane_sums.h. The bits of an element
// do not depend on which tile computes it.
//
// Used while generating; thread-compatible. The generated code is thread-safe.
#ifndef ENGINE_KERNELS_PRODUCTS_DOT_TILE_H_
#define ENGINE_KERNELS_PRODUCTS_DOT_TILE_H_

#include <cstdint>

#include "engine/jit/tail_mask.h"
#include "engine/kernels/products/strided_tile.h"
#include "engine/kernels/tiles/accumulator_tile.h"

namespace tilewire {

struct DotTileConfig {
  int64_t k = 0;
  int64_t src_row_bytes = 0;
  int64_t weights_column_bytes = 0;  // from column to column
  bool fetches_ahead = false;        // brings the columns after those at work into the second cache
  EpilogueConfig epilogue;  // one block; pixels (rows, MaxRows() at most); dst, bias, post-ops
};

class DotTile final : public AccumulatorTile {
 public:
  using Function = void (*)(const StridedTileArgs*);
  DotTile(absl::string_view name, const DotTileConfig& config);

  // The most rows of a tile. There are as many sums at once as a vector has lanes.
  static int MaxRows(const VectorUnit& unit) { return unit.lanes() / 4; }

 private:
  static constexpr int kMostParts = 4;

  void Emit() override;
  void EmitPart(int part);
  void EmitStep(int part, bool masked);
  void ExchangeParts();

  int Lanes() const { return config_.epilogue.unit.lanes(); }
  int Rows() const { return config_.epilogue.pixels; }
  int ColumnOffset(int column) const {
    return static_cast<int>(column * config_.weights_column_bytes);
  }
  int ColumnsOfPart() const { return Lanes() / parts_; }
  // Vector registers: sums of a part, its rows' sums, rows of src, a column of weights, a spare.
  Xbyak::Xmm PartSums(int part) const { return Vector(Lanes() + part); }
  Xbyak::Xmm Source(int row) const { return Vector(Lanes() + parts_ + row); }
  Xbyak::Xmm Weights() const { return Vector(Lanes() + 2 * parts_); }
  Xbyak::Xmm Spare() const { return Vector(Lanes() + 2 * parts_ + 1); }

  const DotTileConfig config_;
  const int parts_;  // of the columns, each of which takes the sums of all rows at once: 1, 2 or 4
  const Xbyak::Reg64 src_ = r8, weights_ = r9;
  const Xbyak::Reg64 ahead_ = r11;  // of the next part, to be fetched meanwhile
  const Xbyak::Reg64 at_ = r10;     // bytes into rows and columns
  const Xbyak::Reg64 left_ = rcx;
  jit::TailMask tail_;  // of K
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_DOT_TILE_H_
