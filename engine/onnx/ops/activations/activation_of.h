// SPDX-License-Identifier: Apache-2.0
//
// Makes operations of activations: functions of one number that can follow another operation in the
// same pass over its result.
#ifndef ENGINE_ONNX_OPS_ACTIVATIONS_ACTIVATION_OF_H_
#define ENGINE_ONNX_OPS_ACTIVATIONS_ACTIVATION_OF_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/functions/function.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// An activation of a value; of integers, where a function of integers computes it.
//   kUnimplemented  nothing does
absl::StatusOr<Operand> ActivationOf(NodeContext& context, functions::EltwiseOp op,
                                     const Operand& src, absl::string_view suffix = "");

// scale * src + shift, as ActivationOf().
absl::StatusOr<Operand> LinearOf(NodeContext& context, const Operand& src, float scale, float shift,
                                 absl::string_view suffix = "");

// ActivationOf() of input 0, as the node's output.
absl::Status FinishActivation(NodeContext& context, const functions::EltwiseOp& op);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_ACTIVATIONS_ACTIVATION_OF_H_
