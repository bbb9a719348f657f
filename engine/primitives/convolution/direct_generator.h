// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of the direct convolution for one tile: `pixels` neighbouring
// outputs of one row times `blocks` blocks of `lanes` output channels, all of them in registers
// over the whole reduction:
//
//   for input block, depth tap, height tap (run-time counts; taps in the padding are left out by
//   the caller)
//     for width tap (taps that some pixels read from the padding are emitted for the other pixels
//     only)
//       for channel of the block
//         load a vector of weights for each output block; broadcast a src element for each pixel;
//         FMA
//
// Depthwise, the one channel of the one input block is a vector of channels, each of which meets
// its own weights. The same order for every tile, so that a result does not depend on how the row
// was cut. Source: Georganas et al., SC'18, section II.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GENERATOR_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/jit/generator.h"
#include "engine/primitives/accumulator_epilogue.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// Strides are bytes.
struct DirectConfig {
  EpilogueConfig epilogue;  // lanes, blocks, pixels, dst
  int vector_registers = 32;
  bool full_blocks = true;  // some input block has all its channels
  int tail_channels = 0;    // channels of the last input block, if it is not full
  int64_t src_channel = 0, src_pixel = 0, src_block = 0;
  Spatial src_tap{0, 0, 0};
  Spatial kernel{1, 1, 1};
  int64_t weights_oc_block = 0, weights_ic_block = 0;
  std::vector<TapRange> taps;  // for each pixel, the width taps that lie inside src
  bool chunked = false;        // input channels come in several calls; sums wait in dst
  bool depthwise =
      false;  // a vector of src, not one broadcast element, meets each vector of weights
  int tap_channels = 16;  // vectors of weights for one tap of an input block
};

// What one call works on. Pointers are to the first valid depth and height tap, width tap 0.
struct DirectArgs {
  const float* src;
  const float* weights;
  const float* bias;
  float* dst;
  int64_t full_blocks;              // input blocks
  int64_t tail_blocks;              // 1 when the block with tail_channels follows them, else 0
  int64_t depth_taps, height_taps;  // >= 1 unless there are no blocks
  int64_t first, last;  // chunked: nonzero in the first and in the last call for these outputs
};
using DirectFunction = void (*)(const DirectArgs*);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateDirect(absl::string_view name,
                                                                     const DirectConfig& config);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GENERATOR_H_
