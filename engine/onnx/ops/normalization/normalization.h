// SPDX-License-Identifier: Apache-2.0
//
// Shared by the normalisations: statistics along dimensions, and a scale and a shift per channel.
#ifndef ENGINE_ONNX_OPS_NORMALIZATION_NORMALIZATION_H_
#define ENGINE_ONNX_OPS_NORMALIZATION_NORMALIZATION_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// The values that standardizing computes:
//   result = (x - mean) / deviation, deviation = sqrt(variance + epsilon)
struct Standard {
  Operand mean, variance, deviation, result;
};

// Standardizes by the statistics along the marked dimensions.
absl::StatusOr<Standard> Standardized(NodeContext& context, const Operand& src,
                                      const std::vector<bool>& reduced, float epsilon);
// (src - mean) / sqrt(variance + epsilon)
absl::StatusOr<Operand> StandardizedBy(NodeContext& context, const Operand& src,
                                       const Operand& mean, const Operand& variance, float epsilon);

// Whether an input has one number per channel or one per element of an image.
enum class Per { kChannel, kElement };

// Returns input i, ready to broadcast to a tensor of dims `src`. kInvalidArgument: its dims differ.
absl::StatusOr<Operand> ParameterOf(NodeContext& context, int i, const Dims& src, Per per);
// src * input 1 + input 2.
absl::StatusOr<Operand> ScaledByInputs(NodeContext& context, const Operand& src, Per per);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_NORMALIZATION_NORMALIZATION_H_
