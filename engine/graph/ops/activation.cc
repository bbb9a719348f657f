// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of one tensor. Names and parameters map to engine/jit/eltwise.h.
#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/element_functions.h"
#include "engine/graph/ops/ops.h"
#include "engine/jit/eltwise.h"

namespace tilewire::graph {
namespace {

using jit::EltwiseAlgorithm;

absl::Status FinishActivation(NodeContext& context, EltwiseAlgorithm algorithm, float alpha = 0,
                              float beta = 0) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  return context.Finish(Activation{{algorithm, alpha, beta}}, {src}, context.input(0).dims);
}

// A bound of Clip: an attribute before opset 11, then an optional input of one element.
absl::StatusOr<float> ReadBound(const NodeContext& context, int input, absl::string_view name,
                                float absent) {
  if (context.node.opset() < 11) return context.node.Float(name, absent);
  if (context.node.HasAttribute(name))
    return context.node.Invalid(absl::StrCat("unknown attribute '", name, "'"));
  if (!context.Has(input)) return absent;
  const Constant& bound = *context.input(input).constant;
  if (bound.count() != 1) return context.node.Invalid(absl::StrCat(name, " is not one number"));
  ABSL_ASSIGN_OR_RETURN(const HeldFloats held, LoadNumbers(bound));
  return held.values[0];
}

// The type of an operand; kF32 of what is known.
DataType ClippedType(const NodeContext& context, const Operand& operand) {
  return operand.value == kNoValue ? DataType::kF32 : context.value(operand.value).type;
}

// Numbers that were made of 8-bit integers are such again.
absl::Status FinishInType(NodeContext& context, const Operand& numbers, DataType type) {
  if (type == DataType::kF32 || numbers.value == kNoValue) return context.SetOutput(numbers);
  return context.Finish(Quantize{}, {numbers.value}, numbers.dims, type);
}

// Between bounds that are computed, or of what is known.
absl::Status ClipByFunctions(NodeContext& context) {
  const DataType type = ClippedType(context, context.input(0));
  const bool folds = context.AllConstant();
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
      return context.node.Invalid(absl::StrCat("input ", i, " is not one number"));
    const Elementwise bounded{i == 1 ? Elementwise::Function::kMax : Elementwise::Function::kMin};
    ABSL_ASSIGN_OR_RETURN(
        result, ElementwiseOf(context, bounded, {result, bound}, absl::StrCat("/bounded", i)));
  }
  return FinishInType(context, result, type);
}

}  // namespace

absl::Status BuildAbs(NodeContext& context) {
  return FinishActivation(context, EltwiseAlgorithm::kAbs);
}
absl::Status BuildExp(NodeContext& context) {
  return FinishActivation(context, EltwiseAlgorithm::kExp);
}
absl::Status BuildRelu(NodeContext& context) {
  return FinishActivation(context, EltwiseAlgorithm::kRelu);
}
absl::Status BuildSigmoid(NodeContext& context) {
  return FinishActivation(context, EltwiseAlgorithm::kLogistic);
}
absl::Status BuildSoftplus(NodeContext& context) {
  return FinishActivation(context, EltwiseAlgorithm::kSoftRelu);
}
// Not the kernels' square root, which gives 0 for a negative number.
absl::Status BuildSqrt(NodeContext& context) {
  if (context.input(0).value != kNoValue)
    return FinishActivation(context, EltwiseAlgorithm::kPow, 1, 0.5f);
  const Operand half = {MakeFloats(context.output_name() + "/half", {}, {0.5f}), kNoValue, {}};
  ABSL_ASSIGN_OR_RETURN(const Operand dst, ElementwiseOf(context, {Elementwise::Function::kPow},
                                                         {context.input(0), half}));
  return context.SetOutput(dst);
}
absl::Status BuildTanh(NodeContext& context) {
  return FinishActivation(context, EltwiseAlgorithm::kTanh);
}

absl::Status BuildElu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.0f));
  return FinishActivation(context, EltwiseAlgorithm::kElu, alpha);
}

absl::Status BuildLeakyRelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 0.01f));
  return FinishActivation(context, EltwiseAlgorithm::kRelu, alpha);
}

absl::Status BuildHardSigmoid(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 0.2f));
  ABSL_ASSIGN_OR_RETURN(const float beta, context.node.Float("beta", 0.5f));
  return FinishActivation(context, EltwiseAlgorithm::kHardSigmoid, alpha, beta);
}

absl::Status BuildHardSwish(NodeContext& context) {
  return FinishActivation(context, EltwiseAlgorithm::kHardSwish, 1.0f / 6.0f, 0.5f);
}

absl::Status BuildClip(NodeContext& context) {
  const bool by_inputs = context.node.opset() >= 11;
  const auto is_computed = [&](int i) {
    return context.Has(i) && context.input(i).constant == nullptr;
  };
  if (by_inputs && (is_computed(1) || is_computed(2) || !is_computed(0)))
    return ClipByFunctions(context);
  constexpr float kMost = std::numeric_limits<float>::max();
  ABSL_ASSIGN_OR_RETURN(const float low, ReadBound(context, 1, "min", -kMost));
  ABSL_ASSIGN_OR_RETURN(const float high, ReadBound(context, 2, "max", kMost));
  jit::EltwiseOp op{EltwiseAlgorithm::kClip, low, high};
  if (low == 0) op = {EltwiseAlgorithm::kBoundedRelu, high, 0};
  if (low == 0 && high >= kMost) op = {EltwiseAlgorithm::kRelu, 0, 0};
  const DataType type = ClippedType(context, context.input(0));
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Numbers(context.input(0)));
  ABSL_ASSIGN_OR_RETURN(const ValueId dst,
                        context.Emit(Activation{op}, {src}, context.input(0).dims,
                                     type == DataType::kF32 ? "" : "/clipped"));
  return FinishInType(context, {nullptr, dst, context.input(0).dims}, type);
}

}  // namespace tilewire::graph
