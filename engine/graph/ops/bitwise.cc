// SPDX-License-Identifier: Apache-2.0
//
// Functions of the bits of integers, which keep their type.
#include "engine/base/status_macros.h"
#include "engine/graph/ops/element_functions.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

using Function = Elementwise::Function;

absl::Status FinishBits(NodeContext& context, Function function) {
  std::vector<Operand> operands;
  for (int i = 0; i < context.input_count(); ++i) operands.push_back(context.input(i));
  ABSL_ASSIGN_OR_RETURN(const Operand dst, ElementwiseOf(context, {function}, operands));
  return context.SetOutput(dst);
}

absl::Status BuildBitShift(NodeContext& context) {
  if (!context.node.HasAttribute("direction"))
    return context.node.Invalid("attribute 'direction' is missing");
  ABSL_ASSIGN_OR_RETURN(const std::string direction,
                        context.node.OneOf("direction", "", {"LEFT", "RIGHT"}));
  return FinishBits(context, direction == "LEFT" ? Function::kShiftLeft : Function::kShiftRight);
}

absl::Status BuildBitwiseAnd(NodeContext& context) {
  return FinishBits(context, Function::kBitAnd);
}
absl::Status BuildBitwiseNot(NodeContext& context) {
  return FinishBits(context, Function::kBitNot);
}
absl::Status BuildBitwiseOr(NodeContext& context) { return FinishBits(context, Function::kBitOr); }
absl::Status BuildBitwiseXor(NodeContext& context) {
  return FinishBits(context, Function::kBitXor);
}

}  // namespace

TILEWIRE_OPERATORS(Bitwise) = {
    {"BitShift", 11, 2, 2, "direction", BuildBitShift, Folds::kInMemory},
    {"BitwiseAnd", 18, 2, 2, "", BuildBitwiseAnd, Folds::kInMemory},
    {"BitwiseNot", 18, 1, 1, "", BuildBitwiseNot, Folds::kInMemory},
    {"BitwiseOr", 18, 2, 2, "", BuildBitwiseOr, Folds::kInMemory},
    {"BitwiseXor", 18, 2, 2, "", BuildBitwiseXor, Folds::kInMemory},
};

}  // namespace tilewire::graph
