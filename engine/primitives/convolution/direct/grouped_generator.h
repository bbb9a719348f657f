// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of a convolution of narrow groups for one tile: `pixels`
// neighbouring outputs of one row times a vector of output channels, whose sums stay in registers.
// For each row of taps and each step of the vector (grouped_lanes.h):
//
//   for each pixel of src that the tile reads:
//     x = the channels that the lanes multiply in this step, taken from the pixel's blocks
//     for each tap along the width by which an output reads the pixel:  its sum += weights * x
//
// so that channels are put in the order of the lanes once for all taps of a row. The order of what
// a sum adds up is the same in every tile.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_GENERATOR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/kernels/tiles/accumulator_epilogue.h"
#include "engine/kernels/tiles/tap_loops.h"
#include "engine/primitives/convolution/direct/grouped_lanes.h"

namespace tilewire::convolution {

struct GroupedConfig {
  EpilogueConfig epilogue;  // of one block
  // src_pixel, src_tap, kernel and taps; its loops are not TapLoopGenerator's.
  TapLoops loops;
  int64_t weights_depth = 0, weights_row = 0, weights_tap = 0;  // bytes between taps
  StepKind kind;
};

// The arguments of one call. Pointers are to the first valid depth and height tap, width tap 0.
struct GroupedArgs {
  const float* src;  // of the block that sources count from
  const float* weights;
  const float* bias;
  const float* slopes;  // of a PRelu
  float* dst;
  const StepTable* table;
  TapLoopArgs loops;  // full_blocks: 0 if all taps lie in the padding
};
using GroupedFunction = void (*)(const GroupedArgs*);

// The longest tile, where steps have up to so many sources.
int MostGroupedPixels(const VectorUnit& unit, int64_t kernel_width, int sources, int scratch);

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateGrouped(absl::string_view name,
                                                                      const GroupedConfig& config);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_GROUPED_GENERATOR_H_
