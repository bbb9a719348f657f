// SPDX-License-Identifier: Apache-2.0
//
// The tiles of a Winograd convolution on their way between the images and the scratchpad: the
// generated transforms of inputs and outputs, and the borders of images. What lies between the two,
// the product for each point, is the drivers'.
//
// The tiles of all images form one row, image after image. In the scratchpad a tile is a vector for
// each block of channels and point; neighbouring tiles are neighbours there.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_TILES_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_TILES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/range.h"
#include "engine/jit/generator.h"
#include "engine/kernels/attributes.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/winograd/winograd_plan.h"
#include "engine/primitives/convolution/winograd/winograd_transform_generator.h"

namespace tilewire::convolution {

struct WinogradProblem {
  Geometry geometry;  // out is even where the result is pooled
  VectorUnit unit;
  WinogradPlan plan;
  ActivationStrides src, dst;
  bool has_bias = false;
  PostOps post_ops;
  bool short_chains = false;  // sums round less, as training wants them
  bool pools = false;         // after the post-ops: dst holds the maximum of each 2x2 pixels

  int64_t PixelsOfDst() const { return pools ? MaxPoolingPostOp::kSize : 1; }  // along a side
};

// Pointers are to element (0,...,0).
struct WinogradOperands {
  const float* src;
  const void* weights;
  const float* bias;
  float* dst;
};

// Immutable.
class WinogradTiles {
 public:
  // Between points and between blocks of channels in the scratchpad, in elements.
  struct Distances {
    int64_t point = 0, block = 0;
  };

  // `v`, `m`: of transformed inputs, and of products.
  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<WinogradTiles> Create(absl::string_view name,
                                              const WinogradProblem& problem, const Distances& v,
                                              const Distances& m);

  // Makes `blocks` of the transformed inputs of `tiles`, from v on.
  void TransformInputs(const WinogradOperands& operands, const Range& tiles, const Range& blocks,
                       float* v) const;
  // Makes dst of the products of `tiles` and `blocks`, which begin at m.
  void TransformOutputs(const WinogradOperands& operands, const Range& tiles, const Range& blocks,
                        const float* m) const;

  int64_t code_bytes() const;

 private:
  // Where a tile lies: its image, and its first pixel in dst.
  struct Position {
    int64_t image, row, column;
  };
  // Functions for the tiles inside dst, and for those that its last rows or columns cut.
  struct OutputFunctions {
    WinogradOutputFunction by_cut[2][2];  // [cut rows][cut columns]
  };

  WinogradTiles(const WinogradProblem& problem, const Distances& v, const Distances& m);
  absl::Status Generate(absl::string_view name);
  absl::Status GenerateOutputs(absl::string_view name, int tail_lanes, OutputFunctions* functions);
  template <typename Function>
  Function Keep(std::unique_ptr<const jit::Generator> generator);

  Position PositionOf(int64_t tile) const;
  void Advance(Position* position) const;  // to the next tile
  void TransformInput(const float* src, const Position& position, const Range& blocks,
                      float* v) const;

  WinogradProblem problem_;
  Distances v_, m_;
  std::vector<float> slopes_;  // of a PRelu, in whole vectors
  std::vector<std::unique_ptr<const jit::Generator>> generators_;
  WinogradInputFunction input_ = nullptr;
  OutputFunctions output_{}, output_tail_{};  // the last, partial block
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_TILES_H_
