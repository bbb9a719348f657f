// SPDX-License-Identifier: Apache-2.0
//
// Generates the inner function of the integer depthwise convolution for one tile: `pixels`
// neighbouring outputs of one row times one block of `lanes` channels, whose s32 sums stay in
// registers:
//
//   for depth tap, height tap (run-time counts; taps in the padding are left out by the caller)
//     load the weights of all width taps
//     for every column of src that the tile reads: load it once; multiply it into each pixel that
//     it concerns
//
// Bytes become 16-bit numbers in 32-bit lanes, so that products are exact whatever the signs; with
// VNNI vpdpwssd adds them up. Takes the configuration and the arguments of the dense tile: one quad
// counts as one channel.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_DEPTHWISE_GENERATOR_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_DEPTHWISE_GENERATOR_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/kernels/integer_tile.h"

namespace tilewire::convolution {

// Width taps whose weights fit the registers.
constexpr int kMaxDepthwiseTaps = 8;

//   kResourceExhausted, kUnimplemented  see jit::Compile
absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateIntegerDepthwise(
    absl::string_view name, const IntegerConfig& config);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_INTEGER_DEPTHWISE_GENERATOR_H_
