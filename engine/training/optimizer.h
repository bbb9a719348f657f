// SPDX-License-Identifier: Apache-2.0
//
// Optimizers, as torch 1.13 defines them. A step changes a parameter w by its gradient g, the rate
// r and the decay d; t counts the steps, from 1:
//
//   SGD    g += d w; v = momentum v + (1 - dampening) g, at first v = g; w -= r v, or with nesterov
//          r (g + momentum v)
//   Adam   g += d w; m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
//          w -= r / (1 - beta1^t) m / (sqrt(v / (1 - beta2^t)) + epsilon)
//   AdamW  w -= r d w; then Adam's with d = 0
//
// Factors are computed in double and rounded once, elements in f32. Each element is computed by
// itself: bits depend on neither threads nor layouts. Thread-compatible.
#ifndef ENGINE_TRAINING_OPTIMIZER_H_
#define ENGINE_TRAINING_OPTIMIZER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/threading/arena.h"
#include "engine/training/gradient_norm.h"
#include "engine/training/training_spec.h"

namespace tilewire::training {

// A parameter in a step. All arrays that the optimizer uses have the same size.
struct OptimizedParameter {
  absl::Span<float> value;
  absl::Span<const float> gradient;
  absl::Span<float> state[2];  // StateCount() of them are used
  double rate = 0;
  double weight_decay = 0;
};

// How many floats per element an optimizer keeps from step to step, zeros at first.
int StateCount(const OptimizerSpec& optimizer);

// Step number `step` = 1, 2, ... of all parameters. `bounds` are put on gradients first.
void TakeStep(const OptimizerSpec& optimizer, int64_t step,
              absl::Span<const OptimizedParameter> parameters, const GradientBounds& bounds,
              const threading::Team& team);

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_OPTIMIZER_H_
