// SPDX-License-Identifier: Apache-2.0
//
// The gradient of src of a depthwise convolution. Where an image is a plane and registers hold a
// row of taps beside enough sums, a plane is a call (depthwise_source_plane_generator.h).
//
// Elsewhere it is computed by phases: pixels of src that are a stride apart along each dimension
// are reached by the same taps, and make up a depthwise convolution of diff_dst of stride 1 by
// these taps in reverse order, whose outputs lie a stride apart (direct/direct_driver.h). A phase
// without taps is zero. All phases of a block of channels of an image run one after the other,
// while diff_dst and diff_src are in cache.
//
// Immutable once created; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_SOURCE_GRADIENT_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_SOURCE_GRADIENT_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/convolution/backward/depthwise_source_plane_generator.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

// Strides in elements; lanes of weights are channels.
struct DepthwiseSourceProblem {
  Geometry geometry;  // of the convolution forward
  VectorUnit unit;
  ActivationStrides diff_src, diff_dst;
  int64_t weights_block = 0;  // of as many channels as there are lanes
  Spatial weights_taps{0, 0, 0};
  bool packed_diff_src = false, packed_diff_dst = false;  // see DirectProblem
  PostOps post_ops;                                       // without a mask
};

// The pixels of src, a stride apart along one dimension, that the same taps reach.
struct SourcePhase {
  int64_t first, pixels;
  std::vector<int64_t> taps;      // in the order of the pixels of diff_dst that they reach from
  int64_t tap_step = 1, pad = 0;  // of the convolution of diff_dst
};
std::vector<SourcePhase> SourcePhases(const Geometry& geometry, int d);

class DepthwiseSourceGradient {
 public:
  // From and to the first element of each tensor.
  struct Operands {
    const float *diff_dst, *weights;
    float* diff_src;
  };

  // Errors are those of DirectDriver::Create(), and kResourceExhausted: no memory for code.
  static absl::StatusOr<DepthwiseSourceGradient> Create(absl::string_view name,
                                                        const DepthwiseSourceProblem& problem);

  void Run(const Operands& operands, float* scratchpad, const threading::Team& team) const;

  int64_t scratchpad_floats() const { return Blocks() * block_floats_; }
  int64_t code_bytes() const;

 private:
  struct Phase {
    int64_t diff_src = 0, weights = 0;      // elements from the first of an image, and of a block
    std::vector<int64_t> taps;              // elements from a block of weights
    std::vector<DirectDriver> whole, tail;  // one each, where there are such blocks
  };

  explicit DepthwiseSourceGradient(const DepthwiseSourceProblem& problem) : problem_(problem) {}
  bool IsPlanar() const;
  absl::Status CompilePlane(absl::string_view name);
  absl::Status AddPhases(absl::string_view name);
  int64_t Blocks() const;
  int64_t TailChannels() const;
  absl::Status AddPhase(absl::string_view name, const SourcePhase* const (&dims)[3]);
  DirectProblem ProblemOf(const SourcePhase* const (&dims)[3], int64_t channels) const;
  void RunPlane(const Operands& operands, int64_t image, int64_t block) const;
  void RunPhases(const Operands& operands, float* scratchpad, const threading::Team& team) const;
  void CopyWeights(const float* weights, float* copy) const;
  void RunBlock(const Operands& operands, const float* weights, int64_t image, int64_t block) const;

  DepthwiseSourceProblem problem_;
  std::unique_ptr<const DepthwiseSourcePlaneGenerator> plane_;  // or else there are phases
  std::vector<SourceRow> rows_;                                 // of a plane
  std::vector<Phase> phases_;
  int64_t block_floats_ = 0;  // of the weights of all phases
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_SOURCE_GRADIENT_H_
