// SPDX-License-Identifier: Apache-2.0
//
// The steps of a convolution or inner product of 8-bit integers after its sums. A primitive
// computes
//
//   dst = postops((sum(src * weights) + bias[o]) * scale[o])
//
// The operation is given in real numbers: a source s * (x - z) of integers x, weights w[o] times
// integers, a bias b, and a result y. A quantized result holds y / d + e; for a result of real
// numbers d is 1 and e is 0. Then
//
//   scale[o] = s * w[o] / d      bias[o] = b[o] / (s * w[o]) - z * sum(weights[o]) + (e or 0)
//
// Fused steps that commute with a positive factor (relu, clip, ...) work on y / d. If any step does
// not, all of them work on y, and the division by d is the last post-op. A zero point that the bias
// cannot take, because a post-op comes before it, becomes a post-op of its own.
#ifndef ENGINE_LOWERING_WEIGHTED_INTEGER_FUSION_H_
#define ENGINE_LOWERING_WEIGHTED_INTEGER_FUSION_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/kernels/attributes.h"
#include "engine/network/network.h"

namespace tilewire::lowering {

struct IntegerFusion {
  Attributes attributes;
  std::vector<float> bias;                      // [O]; empty for none
  network::ValueId addend = network::kNoValue;  // of the sum among the post-ops
};

// The terms of a convolution or inner product. `weight_sums` are the sums of its integer weights
// per output; they are not read where the zero point of the source is 0.
struct IntegerTerms {
  network::QuantizationParams src;
  std::optional<network::QuantizationParams> dst;
  absl::Span<const float> weight_scales, weight_sums;
  int64_t outputs = 0;
  absl::Span<const float> bias;
  absl::Span<const network::FusedStep> steps;
};

// kUnimplemented: more steps than a primitive takes.
absl::StatusOr<IntegerFusion> PlanIntegerFusion(const IntegerTerms& terms);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_WEIGHTED_INTEGER_FUSION_H_
