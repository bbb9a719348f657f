// SPDX-License-Identifier: Apache-2.0
//
// What the normalisations share: statistics along dimensions, and a scale and a shift a channel.
#ifndef ENGINE_GRAPH_OPS_NORMALIZATION_H_
#define ENGINE_GRAPH_OPS_NORMALIZATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/graph/lowering.h"

namespace tilewire::graph {

// What standardizing computes: result = (x - mean) / deviation, deviation = sqrt(variance +
// epsilon).
struct Standard {
  Operand mean, variance, deviation, result;
};

// By the statistics along the marked dimensions.
absl::StatusOr<Standard> Standardized(NodeContext& context, const Operand& src,
                                      const std::vector<bool>& reduced, float epsilon);
// (src - mean) / sqrt(variance + epsilon)
absl::StatusOr<Operand> StandardizedBy(NodeContext& context, const Operand& src,
                                       const Operand& mean, const Operand& variance, float epsilon);

// Input i, one number a channel, as it is broadcast to a tensor of dims `src`.
// kInvalidArgument: it has other dims.
absl::StatusOr<Operand> PerChannel(NodeContext& context, int i, const Dims& src);
// src * input 1 + input 2, one number each a channel.
absl::StatusOr<Operand> ScaledByInputs(NodeContext& context, const Operand& src);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_OPS_NORMALIZATION_H_
