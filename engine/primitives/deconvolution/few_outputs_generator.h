// SPDX-License-Identifier: Apache-2.0
//
// Generates one tile of a dst with few channels: as many outputs of a row, `stride` apart, as a
// vector has lanes, of one output channel, from a list of taps. The lanes of its sums are input
// channels, which are added up in the end (lane_sums.h), and the outputs are stored in a plain row.
// Where each output of a row has a tap of its own, a tile holds all phases of its pixels of src,
// which are neighbours in dst.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_FEW_OUTPUTS_GENERATOR_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_FEW_OUTPUTS_GENERATOR_H_

#include <cstdint>

#include "engine/jit/tail_mask.h"
#include "engine/kernels/accumulator_tile.h"
#include "engine/primitives/deconvolution/tile_generator.h"

namespace tilewire::deconvolution {

struct FewOutputsConfig {
  VectorUnit unit;
  int pixels = 1;         // times the phases: at most the lanes
  int phases = 1;         // at most kMostPhases; the weights of each follow those of the one before
  int64_t ic_blocks = 1;  // full ones
  int tail_channels = 0;  // of the input block after them, if there is one
  int64_t src_block_bytes = 0, weights_block_bytes = 0, src_row_bytes = 0;
  int64_t dst_pixel_bytes = 4;  // from output to output
  bool bias = false;
  PostOps post_ops;  // without sum if the outputs are apart
};

class FewOutputsGenerator final : public AccumulatorTile {
 public:
  static constexpr int kMostPhases = 4;
  FewOutputsGenerator(absl::string_view name, const FewOutputsConfig& config);

 private:
  void Emit() override;
  void EmitTap();
  void EmitBlock(bool is_tail);
  void StoreApart();
  Xbyak::Xmm Spare(int i) const { return Vector(config_.unit.lanes() + i); }

  const FewOutputsConfig config_;
  jit::TailMask tail_;

  // Registers. Vectors: a sum for each output, then weights, then an element of src.
  const Xbyak::Reg64 tap_ = r8, taps_left_ = r9, src_ = r10, weights_ = r11, blocks_left_ = rcx;
};

}  // namespace tilewire::deconvolution

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_FEW_OUTPUTS_GENERATOR_H_
