// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of the direct convolution for one tile: `pixels` neighbouring
// outputs of one row times `blocks` vectors of output channels, all of them in registers over the
// whole reduction (see tap_loops.h). For a channel:
//
//   load a vector of weights for each output block
//   for each pixel: broadcast its element of src, and multiply and add it to the sum of each block
//
// In a depthwise convolution the one channel of the one input block is a vector of channels, each
// of which has weights of its own. The order is the same in every tile, so that a result does not
// depend on how the row was cut. Source: Georganas et al., SC'18, section II.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_GENERATOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/kernels/tiles/tap_loops.h"

namespace tilewire::convolution {

struct DirectConfig {
  EpilogueConfig epilogue;  // unit, blocks, pixels, dst
  TapLoops loops;
  bool chunked = false;     // input channels come in several calls; sums wait in dst
  bool depthwise = false;   // weights are multiplied by a vector of src, not a broadcast element
  bool packed_src = false;  // of which the last one's tail is not read, only where there are masks
  std::vector<int64_t> pixels_below;  // of src, to prefetch: bytes from tap 0 of the first pixel
  bool fetches_next_tile = false;     // of the row, and not a later block of src for this tile
  bool fetches_dst = false;           // before the reduction, so that stores find its lines
  bool pairs = false;  // a channel is two channels, rounded to bf16, of src and of weights
};

// The arguments of one call. Pointers are to the first valid depth and height tap, width tap 0.
struct DirectArgs {
  const float* src;
  const float* weights;
  const float* bias;
  const float* slopes;  // of a PRelu
  float* dst;
  TapLoopArgs loops;
  int64_t first, last;  // if chunked: nonzero in the first and in the last call for these outputs
};
using DirectFunction = void (*)(const DirectArgs*);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateDirect(absl::string_view name,
                                                                     const DirectConfig& config);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_GENERATOR_H_
