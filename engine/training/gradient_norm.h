// SPDX-License-Identifier: Apache-2.0
//
// The Euclidean norm of all gradients, and the bounds of a step: each element is kept within
// [-value, value], and then all are multiplied by norm / (|g| + 1e-6) if their norm |g| exceeds
// `norm`, as torch's clip_grad_norm_ does. Squares are added in double: by block, blocks in their
// order, gradients in theirs. Results depend on no thread.
#ifndef ENGINE_TRAINING_GRADIENT_NORM_H_
#define ENGINE_TRAINING_GRADIENT_NORM_H_

#include <limits>

#include "absl/types/span.h"
#include "engine/threading/arena.h"

namespace tilewire::training {

// The bound that a step puts on elements, and what it multiplies them by.
struct GradientBounds {
  float value = std::numeric_limits<float>::infinity();
  float scale = 1;

  float operator()(float g) const {
    g = g > value ? value : g;
    return (g < -value ? -value : g) * scale;
  }
};

// The same where no bound is put on elements: two comparisons fewer, which would take longer than
// memory does.
struct GradientScale {
  float scale = 1;

  float operator()(float g) const { return g * scale; }
};

// Calls body(bounds) with the form that does least.
template <typename Body>
void WithBounds(const GradientBounds& bounds, const Body& body) {
  if (bounds.value == std::numeric_limits<float>::infinity()) {
    body(GradientScale{bounds.scale});
  } else {
    body(bounds);
  }
}

// Elements count as the bounds' value leaves them. NaN or infinite if an element is.
double NormOf(absl::Span<const absl::Span<const float>> gradients, float value,
              const threading::Team& team);

// The bounds for gradients of this norm; 0: no bound. All elements are finite.
GradientBounds BoundsOf(absl::Span<const absl::Span<const float>> gradients, double norm,
                        double clip_value, double clip_norm, const threading::Team& team);

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_GRADIENT_NORM_H_
