// SPDX-License-Identifier: Apache-2.0
//
// Activations that are more than a row of engine/functions/functions.inc says (functions.cc has
// those). Functions of several tensors are in elementwise.cc.
#include <limits>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/functions/function.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// A bound of Clip: an attribute before opset 11, then an optional input of one element.
absl::StatusOr<float> ReadBound(const NodeContext& context, int input, absl::string_view name,
                                float absent) {
  if (context.node.opset() < 11) return context.node.Float(name, absent);
  if (context.node.HasAttribute(name))
    return context.node.Invalid("unknown attribute '", name, "'");
  if (!context.Has(input)) return absent;
  const Constant& bound = *context.input(input).constant;
  if (bound.count() != 1) return context.node.Invalid(name, " is not one number");
  ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(bound));
  return held.values[0];
}

// Sets the output, converted back to `type` if that is one of 8-bit integers.
absl::Status FinishInType(NodeContext& context, const Operand& numbers, DataType type) {
  if (type == DataType::kF32 || numbers.value == kNoValue) return context.SetOutput(numbers);
  return context.SetOutput(
      context.Emit(network::Quantize{}, {numbers.value}, numbers.dims, "", type));
}

// Clip of doubles before opset 11.
absl::Status ClipDoubles(NodeContext& context) {
  Operand result = context.input(0);
  for (const char* name : {"min", "max"}) {
    if (!context.node.HasAttribute(name)) continue;
    ABSL_ASSIGN_OR_RETURN(const float bound, context.node.Float(name, 0));
    const Elementwise bounded{name == std::string_view("min") ? Function::kMax : Function::kMin};
    const Operand number = OperandOf(network::MakeDoubles(name, {}, {bound}));
    ABSL_ASSIGN_OR_RETURN(
        result, ElementwiseOf(context, bounded, {result, number}, absl::StrCat("/bounded_", name)));
  }
  return context.SetOutput(result);
}

// Clip with bounds that are computed at run time, or of a constant.
absl::Status ClipByFunctions(NodeContext& context) {
  const DataType type = context.TypeOf(context.input(0));
  const bool in_type = type != DataType::kF32 && !IsByte(type);  // the functions keep it
  const bool folds = context.AllConstant() || in_type;
  const auto numbers = [&](int i) -> absl::StatusOr<Operand> {
    const Operand operand = context.input(i);
    if (folds) return operand;
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.Numbers(operand));
    return Operand{nullptr, value, operand.dims};
  };
  ABSL_ASSIGN_OR_RETURN(Operand result, numbers(0));
  for (int i = 1; i <= 2; ++i) {
    if (!context.Has(i)) continue;
    ABSL_ASSIGN_OR_RETURN(const Operand bound, numbers(i));
    if (ElementCount(bound.dims) != 1)
      return context.node.Invalid("input ", i, " is not one number");
    const Elementwise bounded{i == 1 ? Function::kMax : Function::kMin};
    ABSL_ASSIGN_OR_RETURN(
        result, ElementwiseOf(context, bounded, {result, bound}, absl::StrCat("/bounded", i)));
  }
  return FinishInType(context, result, in_type ? DataType::kF32 : type);
}

// For integers: the maximum with 0.
absl::Status BuildRelu(NodeContext& context) {
  if (IsIntegerType(context.TypeOf(context.input(0)))) {
    const Operand zero = OperandOf(MakeInts(context.output_name() + "/zero", {}, {0}));
    return context.SetOutput(ElementwiseOf(context, {Function::kMax}, {context.input(0), zero}));
  }
  return FinishActivation(context, {EltwiseAlgorithm::kRelu});
}
absl::Status BuildSelu(NodeContext& context) {
  const bool old = context.node.opset() < 6;
  ABSL_ASSIGN_OR_RETURN(const float alpha,
                        context.node.Float("alpha", old ? 1.6732f : 1.67326319217681884765625f));
  ABSL_ASSIGN_OR_RETURN(const float gamma,
                        context.node.Float("gamma", old ? 1.0507f : 1.05070102214813232421875f));
  return FinishElementwise(context, {Function::kSelu, alpha, gamma});
}

absl::Status BuildGelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const std::string by,
                        context.node.OneOf("approximate", "none", {"none", "tanh"}));
  return FinishActivation(context,
                          {by == "tanh" ? EltwiseAlgorithm::kGelu : EltwiseAlgorithm::kGeluErf});
}

absl::Status BuildClip(NodeContext& context) {
  const bool by_inputs = context.node.opset() >= 11;
  const auto is_computed = [&](int i) {
    return context.Has(i) && context.input(i).constant == nullptr;
  };
  if (!by_inputs && (context.Has(1) || context.Has(2)))
    return context.node.Invalid("several inputs; before opset 11 its bounds are attributes");
  const DataType own = context.TypeOf(context.input(0));
  const bool in_type = own != DataType::kF32 && !IsByte(own);
  if (by_inputs && (is_computed(1) || is_computed(2) || !is_computed(0) || in_type))
    return ClipByFunctions(context);
  if (own == DataType::kF64) return ClipDoubles(context);
  if (in_type)
    return context.node.Invalid("takes ", DataTypeName(own),
                                "; before opset 11 it is of real numbers");
  constexpr float kMost = std::numeric_limits<float>::max();
  ABSL_ASSIGN_OR_RETURN(const float low, ReadBound(context, 1, "min", -kMost));
  ABSL_ASSIGN_OR_RETURN(const float high, ReadBound(context, 2, "max", kMost));
  functions::EltwiseOp op{EltwiseAlgorithm::kClip, low, high};
  if (low == 0) op = {EltwiseAlgorithm::kBoundedRelu, high, 0};
  if (low == 0 && high >= kMost) op = {EltwiseAlgorithm::kRelu, 0, 0};
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Numbers(context.input(0)));
  ABSL_ASSIGN_OR_RETURN(const ValueId dst,
                        context.Emit(network::Activation{op}, {src}, context.input(0).dims,
                                     own == DataType::kF32 ? "" : "/clipped"));
  return FinishInType(context, {nullptr, dst, context.input(0).dims}, own);
}

}  // namespace

TILEWIRE_OPERATORS(Activation) = {
    {"Clip", 1, 1, 3, "max min", BuildClip, Folds::kInMemory},
    OfReals({"Gelu", 20, 1, 1, "approximate", BuildGelu}),
    {"Relu", 1, 1, 1, "", BuildRelu},
    OfReals({"Selu", 1, 1, 1, "alpha gamma", BuildSelu, Folds::kInMemory}),
};

}  // namespace tilewire::reader
