// SPDX-License-Identifier: Apache-2.0
//
// Functions of the bits of integers, which keep their type.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// Whether the result does not depend on the number of bits.
bool IsSameInAllTypes(Function function) {
  return function == Function::kBitAnd || function == Function::kBitOr ||
         function == Function::kBitXor;
}

// In the type that the integers have in the model, whatever holds them.
template <Function kFunction>
absl::Status BuildBits(NodeContext& context) {
  const DataType type = context.ElementType(0);
  if (!IsIntegerType(type))
    return context.node.Invalid("of ", DataTypeName(type), "; it is of integers");
  const bool is_folded = context.AllConstant() && IsSameInAllTypes(kFunction);
  std::vector<Operand> operands;
  for (int i = 0; i < context.input_count(); ++i) {
    Operand operand = context.input(i);
    if (!is_folded) {
      ABSL_ASSIGN_OR_RETURN(const ValueId value, context.InType(operand, type));
      operand = {nullptr, value, operand.dims};
    }
    operands.push_back(std::move(operand));
  }
  return context.SetOutput(ElementwiseOf(context, {kFunction}, operands));
}

absl::Status BuildBitShift(NodeContext& context) {
  if (!context.node.HasAttribute("direction"))
    return context.node.Invalid("attribute 'direction' is missing");
  ABSL_ASSIGN_OR_RETURN(const std::string direction,
                        context.node.OneOf("direction", "", {"LEFT", "RIGHT"}));
  return direction == "LEFT" ? BuildBits<Function::kShiftLeft>(context)
                             : BuildBits<Function::kShiftRight>(context);
}

}  // namespace

TILEWIRE_OPERATORS(Bitwise) = {
    {"BitShift", 11, 2, 2, "direction", BuildBitShift, Folds::kInMemory},
    {"BitwiseAnd", 18, 2, 2, "", BuildBits<Function::kBitAnd>, Folds::kInMemory},
    {"BitwiseNot", 18, 1, 1, "", BuildBits<Function::kBitNot>, Folds::kInMemory},
    {"BitwiseOr", 18, 2, 2, "", BuildBits<Function::kBitOr>, Folds::kInMemory},
    {"BitwiseXor", 18, 2, 2, "", BuildBits<Function::kBitXor>, Folds::kInMemory},
};

}  // namespace tilewire::reader
