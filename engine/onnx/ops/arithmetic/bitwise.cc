// SPDX-License-Identifier: Apache-2.0
//
// Functions of the bits of integers, which keep their type.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

using Function = network::Elementwise::Function;

// Whether the result does not depend on the number of bits.
bool IsSameInAllTypes(Function function) {
  return function == Function::kBitAnd || function == Function::kBitOr ||
         function == Function::kBitXor;
}

// In the type that the integers have in the model, whatever holds them.
absl::Status FinishBits(NodeContext& context, Function function) {
  const DataType type = context.ElementType(0);
  if (!IsIntegerType(type))
    return context.node.Invalid(absl::StrCat("of ", DataTypeName(type), "; it is of integers"));
  const bool is_folded = context.AllConstant() && IsSameInAllTypes(function);
  std::vector<Operand> operands;
  for (int i = 0; i < context.input_count(); ++i) {
    Operand operand = context.input(i);
    if (!is_folded) {
      ABSL_ASSIGN_OR_RETURN(const network::ValueId value, context.InType(operand, type));
      operand = {nullptr, value, operand.dims};
    }
    operands.push_back(std::move(operand));
  }
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

}  // namespace tilewire::reader
