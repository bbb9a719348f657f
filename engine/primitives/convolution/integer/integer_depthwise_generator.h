// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of the integer depthwise convolution for one tile: `pixels`
// neighbouring outputs of one row times one vector of channels, whose s32 sums stay in registers:
//
//   for depth tap, height tap   run-time counts; the caller leaves out taps in the padding
//     load the weights of all width taps
//     for every column of src that the tile reads
//       load it once, and multiply and add it to the sum of each pixel that reads it
//
// Bytes become 16-bit numbers in 32-bit lanes, so that products are exact whatever the signs.
// vpdpwssd adds them up where the unit has dot products. The configuration and the arguments are
// those of the dense tile, where a quad counts as one channel.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_DEPTHWISE_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_DEPTHWISE_GENERATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/kernels/products/integer_tile.h"

namespace tilewire::convolution {

// How many width taps have their weights in registers.
constexpr int kMaxDepthwiseTaps = 8;

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateIntegerDepthwise(
    absl::string_view name, const IntegerTileConfig& config);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_INTEGER_DEPTHWISE_GENERATOR_H_
