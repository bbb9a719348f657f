// SPDX-License-Identifier: Apache-2.0
//
// The range of integers that are quantized in a run, as an operation computes it: {scale, zero
// point}. Pure; thread-safe.
#ifndef ENGINE_KERNELS_ELEMENTS_QUANTIZATION_RANGE_H_
#define ENGINE_KERNELS_ELEMENTS_QUANTIZATION_RANGE_H_

#include <algorithm>
#include <cstdint>

namespace tilewire {

// The zero point of u8 integers; where it is none, as the range of numbers that are not finite has
// it, the nearest, and 0 for NaN.
inline int32_t ZeroPointOf(const float* range) {
  constexpr float kMost = 255;
  return range[1] > 0 ? static_cast<int32_t>(std::min(range[1], kMost)) : 0;
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTS_QUANTIZATION_RANGE_H_
