// SPDX-License-Identifier: Apache-2.0
//
// A gradient of a convolution's weights as plain numbers. A value.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_PROBLEM_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_PROBLEM_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>

#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// Strides in elements. Lanes of diff_weights are output channels, and neighbours.
struct WeightsGradientProblem {
  struct Weights {
    int64_t group = 0, oc_block = 0, ic_block = 0, channel = 0;
    Spatial taps{0, 0, 0};
    int64_t floats = 0;  // of the whole tensor, which is dense
  };

  Geometry geometry;
  VectorUnit unit;
  ActivationStrides src, dst;  // dst: of diff_dst
  Weights weights;
  bool has_bias = false;
  bool adds = false;  // to what diff_weights and diff_bias hold
};

// Whether four of such distances, in elements, fit in a displacement of generated code. nullopt,
// which is more than 64 bits, does not.
inline bool AreNear(std::initializer_list<std::optional<int64_t>> spans) {
  constexpr int64_t kLargestSpan = std::numeric_limits<int32_t>::max() / kFloatBytes / 4;
  return std::all_of(spans.begin(), spans.end(), [](const std::optional<int64_t>& span) {
    return span && *span <= kLargestSpan;
  });
}

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_BACKWARD_WEIGHTS_GRADIENT_PROBLEM_H_
