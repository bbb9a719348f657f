// SPDX-License-Identifier: Apache-2.0
//
// Activations (engine/functions/function.h) of f64, as operations on f64 that follow each other.
#ifndef ENGINE_ONNX_OPS_ACTIVATIONS_DOUBLE_ACTIVATIONS_H_
#define ENGINE_ONNX_OPS_ACTIVATIONS_DOUBLE_ACTIVATIONS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// `src` is a value or a constant of f64, and so is the result a value.
absl::StatusOr<Operand> ActivationOfDoubles(NodeContext& context, const functions::EltwiseOp& op,
                                            const Operand& src, absl::string_view suffix);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_ACTIVATIONS_DOUBLE_ACTIVATIONS_H_
