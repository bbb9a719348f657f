// SPDX-License-Identifier: Apache-2.0
//
// Generates tiles of a dst with few channels: as many outputs of a row, `stride` apart, as a vector
// has lanes, of one output channel (tile_loop.h). The lanes of its sums are input channels, which
// are added up in the end (lane_sums.h), and the outputs are stored in a plain row.
//
// Where each output of a row has a tap of its own, a tile holds all phases of its pixels of src,
// which are neighbours in dst; where the same is true of pairs of rows, a tile holds both rows, so
// that src is read once. The sums of a pair come in two batches, each of half the pixels, whose
// halves are those of either row.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_FEW_OUTPUTS_GENERATOR_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_FEW_OUTPUTS_GENERATOR_H_

#include <cstdint>

#include "engine/jit/tail_mask.h"
#include "engine/primitives/deconvolution/tile_loop.h"

namespace tilewire::deconvolution {

struct FewOutputsConfig {
  VectorUnit unit;
  int pixels = 1;   // of src, or outputs that are apart: times the columns at most the lanes
  int columns = 1;  // neighbouring outputs of a pixel
  int rows = 1;     // 1 or 2; times the columns at most kMostPhases
  TileLoopConfig loop;
  int64_t src_row_bytes = 0;
  int64_t dst_pixel_bytes = 4, dst_row_bytes = 0;  // from output to output, from row to row
  bool bias = false;
  PostOps post_ops;  // without sum if the outputs are apart
};

class FewOutputsGenerator final : public TileLoop {
 public:
  // The phases of an output channel; the weights of each follow those of the one before.
  static constexpr int kMostPhases = 4;
  FewOutputsGenerator(absl::string_view name, const FewOutputsConfig& config);

 private:
  void EmitTile() override;
  void EmitBlock(int channels) override;
  void EmitTables() override;
  void SumBatch(int batch);
  void JoinBatches();
  void AddBias();
  void StoreApart();
  int PixelsOfBatch() const { return config_.unit.lanes() / (config_.columns * config_.rows); }
  Xbyak::Xmm Spare(int i) const { return Vector(config_.unit.lanes() + i); }
  Xbyak::Xmm FirstBatch() const { return Spare(kMostPhases + 1); }

  // Vectors: a sum for each output, then weights, then an element of src, then the first batch.
  const FewOutputsConfig config_;
  jit::TailMask tail_;
  int batch_ = 0;  // being emitted
};

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_FEW_OUTPUTS_GENERATOR_H_
