// SPDX-License-Identifier: Apache-2.0
//
// The direct convolution around its generated tiles: which tiles there are, how they are cut into
// pieces of work, and the loops over images, groups, rows and chunks of channels. One driver serves
// every vector unit.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_DRIVER_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_DRIVER_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/attributes.h"
#include "engine/primitives/convolution/direct/direct_generator.h"
#include "engine/primitives/convolution/direct/tile_cache.h"
#include "engine/primitives/convolution/direct/tiling.h"
#include "engine/primitives/convolution/direct/weights_prefetch.h"
#include "engine/primitives/convolution/direct/work_grid.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/primitive.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// Strides in elements.
struct ActivationStrides {
  int64_t image = 0, group = 0;
  int64_t block = 0;    // to the next `lanes` channels
  int64_t channel = 1;  // inside a block
  Spatial spatial{0, 0, 0};
};
// Inside an input block weights are dense: [depth][height][width][tap_channels][oc].
struct WeightsStrides {
  int64_t group = 0, oc_block = 0, ic_block = 0;
};

struct DirectProblem {
  Geometry geometry;
  VectorUnit unit;
  ActivationStrides src, dst;
  WeightsStrides weights;
  bool has_bias = false;
  bool depthwise = false;  // geometry: one group whose ic is 1 and whose oc counts all channels
  // Depthwise: another pixel follows the last channel, which the last vector must not touch.
  bool packed_src = false, packed_dst = false;
  // Lanes are input channels, so that a block of output channels is one channel; dst is plain.
  bool few_outputs = false;
  bool pairs = false;  // a channel of src and weights is two, rounded to bf16 (bf16_stage.h)
  // If it is kBf16, strides of dst count pairs, and dst.block goes from one line of 32 channels to
  // the next.
  DataType dst_type = DataType::kF32;
  int tap_channels = 16;     // input channels that weights hold for each tap of a block
  int64_t second_cache = 0;  // bytes; 0 where they are not known
  PostOps post_ops;
};

// Immutable.
class DirectDriver {
 public:
  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<DirectDriver> Create(absl::string_view name, const DirectProblem& problem);

  // Pointers are to element (0,...,0).
  void Run(const float* src, const float* weights, const float* bias, float* dst,
           const threading::Team& team) const;

  int64_t code_bytes() const { return functions_.code_bytes(); }

 private:
  struct Operands;

  DirectDriver(const DirectProblem& problem, const WorkSize& work, WorkGrid grid);
  DirectConfig ConfigOf(const Range& tile, const Range& oc_group) const;
  EpilogueConfig EpilogueOf(const Range& tile, const Range& oc_group) const;
  bool PrefetchesWeights() const;
  bool FetchesPixelsBelow() const;
  bool FetchesNextTile(const Range& tile) const;
  bool FetchesDst() const;
  std::vector<int64_t> PixelsBelow(int64_t tile_pixels) const;
  void RunPiece(const Operands& operands, const WorkGrid::Piece& piece) const;
  DirectArgs PositionOf(const Operands& operands, const WorkGrid::Piece& piece, int64_t oc_group,
                        int64_t ic_block) const;
  bool KeepsWeights() const;
  WeightsPrefetch NextImage(const Operands& operands, const WorkGrid::Piece& piece,
                            int64_t oc_group, int64_t ic_block) const;
  WeightsPrefetch WeightsAfter(const Operands& operands, const WorkGrid::Piece& piece,
                               int64_t oc_group, int64_t ic_block) const;

  DirectProblem problem_;
  WorkSize work_;
  WorkGrid grid_;
  int64_t ic_blocks_, tail_blocks_;  // all of src's, and those that are not full
  std::vector<float> slopes_;        // of all channels, and as many more as a vector may read
  TileCache<DirectConfig, DirectFunction> functions_;
};

// A primitive that runs the driver of `problem` from the tensors that `info` names. Errors are the
// driver's.
absl::StatusOr<std::unique_ptr<Primitive>> CreateDirectPrimitive(const DirectProblem& problem,
                                                                 PrimitiveInfo info);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_DRIVER_H_
