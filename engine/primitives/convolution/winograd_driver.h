// SPDX-License-Identifier: Apache-2.0
//
// The Winograd convolution around its generated functions: the loops over blocks of tiles, points
// and panels of output channels, and the borders of images. One driver serves every vector unit.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_DRIVER_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_DRIVER_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/attributes.h"
#include "engine/primitives/convolution/direct_driver.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/winograd_gemm_generator.h"
#include "engine/primitives/convolution/winograd_plan.h"
#include "engine/primitives/convolution/winograd_transform_generator.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

struct WinogradProblem {
  Geometry geometry;  // out is even where the result is pooled
  VectorUnit unit;
  WinogradPlan plan;
  ActivationStrides src, dst;
  bool has_bias = false;
  PostOps post_ops;
  bool pools = false;  // after the post-ops: dst holds the maximum of each 2x2 pixels

  int64_t PixelsOfDst() const { return pools ? MaxPoolingPostOp::kSize : 1; }  // along a side
};

// Immutable.
class WinogradDriver {
 public:
  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<WinogradDriver> Create(absl::string_view name,
                                               const WinogradProblem& problem);

  // Pointers are to element (0,...,0); the scratchpad is on a 64-byte boundary.
  void Run(const float* src, const float* weights, const float* bias, float* dst, float* scratchpad,
           const threading::Team& team) const;

  int64_t scratchpad_bytes() const;
  int64_t code_bytes() const;

 private:
  struct Operands {
    const float* src;
    const float* weights;
    const float* bias;
    float* dst;
  };
  // Tiles [first, first + count), with their transformed inputs in v.
  struct Block {
    int64_t first, count, groups;
    float* v;
  };
  // Where a tile lies: its image, and its first pixel in dst.
  struct TilePosition {
    int64_t image, row, column;
  };
  // Functions for the tiles inside dst, and for those that its last rows or columns cut.
  struct OutputFunctions {
    WinogradOutputFunction by_cut[2][2];  // [cut rows][cut columns]
  };

  explicit WinogradDriver(const WinogradProblem& problem);
  absl::Status Generate(absl::string_view name);
  absl::Status GenerateOutputs(absl::string_view name, int tail_lanes, OutputFunctions* functions);
  template <typename Function>
  Function Keep(std::unique_ptr<const jit::Generator> generator);

  Block BlockAt(int64_t index, float* v) const;
  TilePosition PositionOf(int64_t tile) const;
  void Advance(TilePosition* position) const;  // to the next tile
  void RunAlone(const Operands& operands, const Block& block) const;
  void RunShared(const Operands& operands, const Block& block, const threading::Team& team) const;
  void RunPanel(const Operands& operands, const Block& block, int64_t panel, float* m) const;
  void TransformInputs(const Operands& operands, const Block& block, int64_t group) const;
  void TransformInput(const float* src, const TilePosition& position, float* v) const;
  void Multiply(const Operands& operands, const Block& block, int64_t panel, int64_t point,
                float* m) const;
  void TransformOutputs(const Operands& operands, const Block& block, int64_t panel, int64_t group,
                        const float* m) const;

  WinogradProblem problem_;
  std::vector<float> slopes_;  // of a PRelu, in whole vectors
  int64_t slots_ = 1;          // blocks, or panels of the shared one, that may be in work at a time
  std::vector<std::unique_ptr<const jit::Generator>> generators_;
  WinogradInputFunction input_ = nullptr;
  WinogradGemmFunction multiply_ = nullptr, multiply_last_ = nullptr;  // the last panel
  OutputFunctions output_{}, output_tail_{};                           // the last, partial block
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_DRIVER_H_
