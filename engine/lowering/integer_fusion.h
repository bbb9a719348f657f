// SPDX-License-Identifier: Apache-2.0
//
// What a convolution or inner product of 8-bit integers does behind its sums. A primitive computes
//
//   dst = postops((sum(src * weights) + bias[o]) * scale[o])
//
// With src = s (x - z), weights = w[o] * (integers), a bias b, and a result that is y / d + e on
// its grid, where d is 1 and e is 0 for a result of real numbers:
//
//   scale[o] = s * w[o] / d      bias[o] = b[o] / (s * w[o]) - z * sum(weights[o]) + (e or 0)
//
// Steps that commute with a positive factor (relu, clip, ...) work on y / d; with any other among
// them y / d comes last, as a step. Zero points that no bias takes are steps, too.
#ifndef ENGINE_LOWERING_INTEGER_FUSION_H_
#define ENGINE_LOWERING_INTEGER_FUSION_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/graph/network.h"
#include "engine/kernels/attributes.h"

namespace tilewire::lowering {

struct IntegerFusion {
  Attributes attributes;
  std::vector<float> bias;                  // [O]; empty for none
  graph::ValueId addend = graph::kNoValue;  // of the sum among the post-ops
};

// What a convolution or inner product has, and the sums of its weights as integers, one an output
// (not looked at where the zero point of the source is 0).
struct IntegerTerms {
  graph::QuantizationParams src;
  std::optional<graph::QuantizationParams> dst;
  absl::Span<const float> weight_scales, weight_sums;
  int64_t outputs = 0;
  absl::Span<const float> bias;
  absl::Span<const graph::FusedStep> steps;
};

// kUnimplemented: more steps than a primitive takes.
absl::StatusOr<IntegerFusion> PlanIntegerFusion(const IntegerTerms& terms);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_INTEGER_FUSION_H_
