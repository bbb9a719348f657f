// SPDX-License-Identifier: Apache-2.0
//
// The integer convolution around its generated tiles: which tiles there are, how they are cut into
// pieces of work, and the loops over images, groups, rows and groups of output blocks. One driver
// serves every vector unit.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_DRIVER_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_DRIVER_H_

#include <cstdint>
#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/products/integer_tile.h"
#include "engine/primitives/convolution/direct/tile_cache.h"
#include "engine/primitives/convolution/direct/tiling.h"
#include "engine/primitives/convolution/direct/work_grid.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/integer/matrix_tiling.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// Strides in bytes.
struct ByteStrides {
  int64_t image = 0, group = 0;
  int64_t block = 0;  // to the next `lanes` channels
  Spatial spatial{0, 0, 0};
};

struct IntegerProblem {
  Geometry geometry;  // input channels count quads
  ByteProducts products = ByteProducts::kDots;
  bool signed_src = false;
  bool depthwise = false;  // geometry: one group, whose ic is 1 and whose oc counts all channels
  bool on_matrix_tiles = false;  // src has no padding, and whole steps of matrix_tile.h
  bool is_bf16 = false;          // on matrix tiles: a quad is two numbers of bf16, sums are f32
  bool packed_src = false;       // depthwise: see IntegerTileConfig
  int block_quads = 1;  // of an input block; the quads of a pixel lie side by side, inside a
                        // block and from block to block
  ByteStrides src, dst;
  int64_t weights_group = 0, weights_oc_block = 0, weights_ic_block = 0;  // bytes
  EpilogueConfig epilogue;  // unit, bias, scales, compensation, post-ops, types

  const VectorUnit& unit() const { return epilogue.unit; }
};

// Immutable.
class IntegerDriver {
 public:
  // Pointers are to element (0,...,0) of the first image; scales and compensation of a group begin
  // `lanes`-aligned.
  struct Operands {
    const std::byte* src;
    const std::byte* weights;
    const std::byte* bias;
    const float* scales;
    const int32_t* compensation;
    std::byte* dst;
    // One for each image, group and pixel of dst, in the order of problem().geometry.
    const int32_t* pixel_compensation = nullptr;
  };

  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<IntegerDriver> Create(absl::string_view name,
                                              const IntegerProblem& problem);

  void Run(const Operands& operands, int64_t images, const threading::Team& team) const;

  int64_t code_bytes() const { return functions_.code_bytes(); }
  // As it is computed: pixels may have been flattened or turned.
  const IntegerProblem& problem() const { return problem_; }

 private:
  IntegerDriver(const IntegerProblem& problem, std::optional<FlatPlane> plane,
                bool prefetches_weights, WorkGrid grid)
      : problem_(problem),
        plane_(plane),
        prefetches_weights_(prefetches_weights),
        grid_(std::move(grid)) {}
  IntegerTileConfig ConfigOf(const Range& tile, const Range& oc_group) const;
  TapLoops LoopsOf(const Range& tile) const;
  void RunOnMatrixTiles(const Operands& operands, const WorkGrid::Piece& piece) const;
  IntegerTileArgs PositionOf(const Operands& operands, const WorkGrid::Piece& piece,
                             int64_t oc_group) const;
  WeightsPrefetch WeightsAfter(const Operands& operands, const WorkGrid::Piece& piece,
                               int64_t oc_group, int64_t images) const;

  IntegerProblem problem_;
  std::optional<FlatPlane> plane_;  // that problem_ has been flattened from
  bool prefetches_weights_;         // into the second cache, before their turn
  WorkGrid grid_;
  TileCache<IntegerTileConfig, IntegerTileFunction> functions_;
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_DRIVER_H_
