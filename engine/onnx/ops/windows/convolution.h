// SPDX-License-Identifier: Apache-2.0
//
// The convolution that a node's attributes describe, for the operators that contain one.
#ifndef ENGINE_ONNX_OPS_WINDOWS_CONVOLUTION_H_
#define ENGINE_ONNX_OPS_WINDOWS_CONVOLUTION_H_

#include "absl/status/statusor.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// Convolves `src` [N, C, spatial...] with weights [O, C/groups, k...] and a bias [O], or one that
// is not defined(). Constant weights are packed once, computed ones in every run.
//   kInvalidArgument  shapes or attributes that do not fit each other
absl::StatusOr<ValueId> EmitConvolution(NodeContext& context, ValueId src, const Operand& weights,
                                        const Operand& bias, absl::string_view suffix = "");

// The same for a given window; `dst` holds the dims of the result.
absl::StatusOr<ValueId> EmitWindowed(NodeContext& context, ValueId src,
                                     network::ComputedConvolution window, const Operand& weights,
                                     const Operand& bias, Dims dst, absl::string_view suffix = "");

//   kInvalidArgument  the bias is defined() and does not have one element per output
absl::Status CheckBias(const Node& node, const Operand& bias, int64_t outputs);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_WINDOWS_CONVOLUTION_H_
