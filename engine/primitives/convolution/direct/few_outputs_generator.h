// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of a convolution with few output channels for one tile: as many
// neighbouring outputs of a row as a vector has lanes, of one output channel. Each has a vector of
// sums, whose lanes are input channels, over the whole reduction (see tap_loops.h):
//
//   load a vector of weights: of one tap, a block of input channels
//   for each pixel: multiply its block of src with them, and add that to the pixel's sums
//
// Then the lanes of each vector are added up (lane_sums.h), which makes a vector of neighbouring
// outputs that takes bias and post-ops and is stored as it lies in a plain row of dst. Where
// channels of the output were lanes, a few of them would leave most of a vector idle.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_FEW_OUTPUTS_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_FEW_OUTPUTS_GENERATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/primitives/convolution/direct/direct_generator.h"

namespace tilewire::convolution {

// Four fields of the tile's epilogue are read: unit, pixels (at most the lanes), bias and post-ops.
// A PRelu's slopes are a whole vector of the channel's slope.
//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateFewOutputs(absl::string_view name,
                                                                         const DirectConfig& config,
                                                                         int tail_channels);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_FEW_OUTPUTS_GENERATOR_H_
