// SPDX-License-Identifier: Apache-2.0
//
// The gradients of the weights and bias of a depthwise convolution. Where registers hold the sums
// of a row of taps, a plane is a call for every few of these rows (depthwise_plane_generator.h).
// Elsewhere, and where the code of such a call is too long, outputs that the same taps reach make
// up a rectangle of an image, and a depthwise tile of weights_gradient_generator.h holds the sums
// of as many of its taps as registers last for. Blocks of channels have owners, which add the
// planes or rectangles of all images in their order: bits depend on the descriptor of one image and
// the vector unit alone.
//
// Immutable once created; thread-safe.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_WEIGHTS_GRADIENT_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_WEIGHTS_GRADIENT_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/tap_runs.h"
#include "engine/primitives/convolution/backward/depthwise_plane_generator.h"
#include "engine/primitives/convolution/backward/weights_gradient_driver.h"
#include "engine/threading/arena.h"

namespace tilewire::convolution {

class DepthwiseWeightsGradient {
 public:
  using Operands = WeightsGradientDriver::Operands;

  // The geometry has one channel per group; of `weights`, oc_block is from block to block of
  // channels.
  //   kUnimplemented      strides do not fit the 32-bit displacements of the generated code
  //   kResourceExhausted  no memory for code
  static absl::StatusOr<DepthwiseWeightsGradient> Create(absl::string_view name,
                                                         const WeightsGradientProblem& problem);

  // Returns early when the run is stopped.
  void Run(const Operands& operands, const threading::Team& team) const;

  int64_t code_bytes() const;

 private:
  using Segment = OutputSegment;
  // A rectangle of the outputs of one depth, and the first elements of its tensors.
  struct Place {
    const float *src, *diff_dst;
    float* diff_weights;
  };
  using Tile = std::unique_ptr<const jit::Generator>;
  using Plane = std::array<Tile, 2>;  // whether diff_bias of the block has a tail

  explicit DepthwiseWeightsGradient(const WeightsGradientProblem& problem);
  std::vector<Segment> SegmentsOf(int d) const;
  bool IsPlanar() const;
  int64_t MostTaps() const { return problem_.unit.registers() >= 32 ? 24 : 12; }
  int64_t Blocks() const;
  int64_t TailChannels() const;
  absl::Status Compile(absl::string_view name);
  absl::Status CompileRectangles(absl::string_view name);
  absl::Status CompileTile(absl::string_view name, int64_t rows, int64_t taps_of_row);
  absl::Status CompileBiasTile(absl::string_view name, bool tail);
  absl::Status CompilePlanes(absl::string_view name);
  std::vector<Segment> RowsOf(const TapRange& part) const;
  absl::Status CompilePlane(absl::string_view name, const TapRange& part, bool tail,
                            Tile* to) const;
  // Calls visit(row range, tap range of a row) for parts of the taps that one tile holds.
  template <typename Visit>
  void ForEachPart(const TapRange& rows, const TapRange& taps, const Visit& visit) const;

  void RunBlock(const Operands& operands, int64_t block) const;
  void RunPlanes(const Operands& operands, int64_t block, int64_t image) const;
  DepthwisePlaneArgs ArgsAhead(int64_t block, int64_t image) const;
  void RunImage(const Place& place) const;
  void RunRectangle(const Place& place, const Segment& rows, const Segment& pixels) const;
  void RunBias(const float* diff_dst, int64_t block, float* bias) const;

  WeightsGradientProblem problem_;
  std::array<std::vector<Segment>, 3> segments_;       // some of them may have no taps
  std::map<std::pair<int64_t, int64_t>, Tile> tiles_;  // by rows of taps, and taps of a row
  std::array<Tile, 2> bias_tiles_;                     // whether the block has a tail
  std::vector<Plane> planes_;                          // of parts of the rows of taps
};

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_DEPTHWISE_WEIGHTS_GRADIENT_H_
