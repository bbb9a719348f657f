// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/activations/activation_of.h"

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/double_activations.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"

namespace tilewire::reader {

using network::Elementwise;
namespace {

// The function that computes an activation of integers.
//   kUnimplemented  nothing does
absl::StatusOr<Elementwise> FunctionOf(const NodeContext& context, const functions::EltwiseOp& op,
                                       DataType type) {
  using Algorithm = functions::EltwiseAlgorithm;
  if (op.function == Algorithm::kAbs) return op;
  if (op.function == Algorithm::kLinear && op.alpha == -1 && op.beta == 0)
    return Elementwise{Elementwise::Function::kNegate};
  return context.node.Unimplemented("takes ", DataTypeName(type), " here; supported is f32");
}

}  // namespace

absl::StatusOr<Operand> ActivationOf(NodeContext& context, functions::EltwiseOp op,
                                     const Operand& src, absl::string_view suffix) {
  const DataType own = context.TypeOf(src);
  if (own == DataType::kF64 || (src.constant != nullptr && src.constant->doubles != nullptr))
    return ActivationOfDoubles(context, op, src, suffix);
  if (own != DataType::kF32) {
    ABSL_ASSIGN_OR_RETURN(const Elementwise function, FunctionOf(context, op, own));
    return ElementwiseOf(context, function, {src}, suffix);
  }
  ABSL_ASSIGN_OR_RETURN(const network::ValueId value, context.AsValue(src));
  return context.EmitOperand(network::Activation{op}, {value}, src.dims, suffix);
}

absl::StatusOr<Operand> LinearOf(NodeContext& context, const Operand& src, float scale, float shift,
                                 absl::string_view suffix) {
  return ActivationOf(context, {functions::EltwiseAlgorithm::kLinear, scale, shift}, src, suffix);
}

absl::Status FinishActivation(NodeContext& context, const functions::EltwiseOp& op) {
  return context.SetOutput(ActivationOf(context, op, context.input(0)));
}

}  // namespace tilewire::reader
