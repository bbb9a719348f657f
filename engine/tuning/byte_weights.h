// SPDX-License-Identifier: Apache-2.0
//
// Weights as s8 with a scale for each output and no zero point, and biases as s32 in the scale of
// the products:
//
//   weights  element = round(w / scale[o]),  scale[o] = max |w[o, ...]| / largest
//   biases   element = round(b / (src_scale * scale[o]))
//
// `largest` is kLargestWeight, or kLargestPaired where products are formed in pairs. -128 is not
// used, so that sums of two products of u8 and s8 stay within 16 bits as often as can be in other
// runtimes. Pure functions.
#ifndef ENGINE_TUNING_BYTE_WEIGHTS_H_
#define ENGINE_TUNING_BYTE_WEIGHTS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/memory/dims.h"

namespace tilewire::tuning {

constexpr int kLargestWeight = 127;
// Two products with u8 fit 16 bits. CPUs with AVX2 or AVX-512, but without VNNI, form them in pairs
// where all weights of a layer are so small.
constexpr int kLargestPaired = 64;

struct ByteWeights {
  std::vector<int8_t> elements;  // in the order of the weights
  std::vector<float> scale;      // one per output
};

// `axis` is the dimension that counts the outputs. Weights are finite.
ByteWeights ToBytes(absl::Span<const float> weights, const Dims& dims, int axis,
                    int largest = kLargestWeight);

// nullopt: one of them does not fit 32 bits with a bit to spare, and the biases stay real.
std::optional<std::vector<int32_t>> ToIntegers(absl::Span<const float> biases, float src_scale,
                                               absl::Span<const float> scale);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_BYTE_WEIGHTS_H_
