// SPDX-License-Identifier: Apache-2.0
//
// The losses, by name. engine/primitives/loss/loss.h has their formulas. Pure functions;
// thread-safe. Source: torch 1.13.
#ifndef ENGINE_FUNCTIONS_LOSS_FUNCTION_H_
#define ENGINE_FUNCTIONS_LOSS_FUNCTION_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace tilewire::functions {

enum class LossFunction : uint8_t {
  kSoftmaxCrossEntropy,  // of logits [N, C, d...]; targets are labels [N, d...] of s32 or s64, or
                         // probabilities of f32 as the logits
  kBinaryCrossEntropy,   // of logits and targets in [0, 1] of one shape
  kMeanSquaredError,     // (y - t)^2
  kHuber,                // d = |y - t|: d^2 / 2 up to delta, beyond it delta (d - delta / 2)
};

inline absl::string_view AlgorithmName(LossFunction function) {
  constexpr absl::string_view kNames[] = {"softmax_cross_entropy", "binary_cross_entropy",
                                          "mean_squared_error", "huber"};
  return kNames[static_cast<int>(function)];
}

// Whether weights of classes, which lie along dimension 1, belong to the loss.
constexpr bool HasClassWeights(LossFunction function) {
  return function == LossFunction::kSoftmaxCrossEntropy ||
         function == LossFunction::kBinaryCrossEntropy;
}

}  // namespace tilewire::functions

#endif  // ENGINE_FUNCTIONS_LOSS_FUNCTION_H_
