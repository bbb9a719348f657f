// SPDX-License-Identifier: Apache-2.0
//
// The exponential average of parameters. Step t = 1, 2, ... moves an average a towards w:
//
//   a = d a + (1 - d) w      d = min(decay, (1 + t) / (10 + t))
//
// where a = w at first. Early steps count more, so that the average soon leaves where it began.
// Elements by themselves, in f32: bits depend on neither threads nor layouts.
#ifndef ENGINE_TRAINING_AVERAGE_H_
#define ENGINE_TRAINING_AVERAGE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "engine/threading/arena.h"

namespace tilewire::training {

// A parameter and its average, which have one size.
struct AveragedParameter {
  absl::Span<const float> value;
  absl::Span<float> average;
};

// `decay` is in (0, 1).
void MoveAverages(double decay, int64_t step, absl::Span<const AveragedParameter> parameters,
                  const threading::Team& team);

}  // namespace tilewire::training

#endif  // ENGINE_TRAINING_AVERAGE_H_
