// SPDX-License-Identifier: Apache-2.0
//
// Functions of one tensor, element by element, that are no activation of the kernels.
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/element_functions.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

using Function = Elementwise::Function;

absl::Status BuildOne(NodeContext& context, const Elementwise& function) {
  ABSL_ASSIGN_OR_RETURN(const Operand dst, ElementwiseOf(context, function, {context.input(0)}));
  return context.SetOutput(dst);
}

}  // namespace

absl::Status BuildAcos(NodeContext& context) { return BuildOne(context, {Function::kAcos}); }
absl::Status BuildAcosh(NodeContext& context) { return BuildOne(context, {Function::kAcosh}); }
absl::Status BuildAsin(NodeContext& context) { return BuildOne(context, {Function::kAsin}); }
absl::Status BuildAsinh(NodeContext& context) { return BuildOne(context, {Function::kAsinh}); }
absl::Status BuildAtan(NodeContext& context) { return BuildOne(context, {Function::kAtan}); }
absl::Status BuildAtanh(NodeContext& context) { return BuildOne(context, {Function::kAtanh}); }
absl::Status BuildCeil(NodeContext& context) { return BuildOne(context, {Function::kCeil}); }
absl::Status BuildCos(NodeContext& context) { return BuildOne(context, {Function::kCos}); }
absl::Status BuildCosh(NodeContext& context) { return BuildOne(context, {Function::kCosh}); }
absl::Status BuildErf(NodeContext& context) { return BuildOne(context, {Function::kErf}); }
absl::Status BuildFloor(NodeContext& context) { return BuildOne(context, {Function::kFloor}); }
absl::Status BuildIsNaN(NodeContext& context) { return BuildOne(context, {Function::kIsNan}); }
absl::Status BuildLog(NodeContext& context) { return BuildOne(context, {Function::kLog}); }
absl::Status BuildNot(NodeContext& context) { return BuildOne(context, {Function::kNot}); }
absl::Status BuildReciprocal(NodeContext& context) {
  return BuildOne(context, {Function::kReciprocal});
}
absl::Status BuildRound(NodeContext& context) { return BuildOne(context, {Function::kRound}); }
absl::Status BuildSign(NodeContext& context) { return BuildOne(context, {Function::kSign}); }
absl::Status BuildSin(NodeContext& context) { return BuildOne(context, {Function::kSin}); }
absl::Status BuildSinh(NodeContext& context) { return BuildOne(context, {Function::kSinh}); }
absl::Status BuildSoftsign(NodeContext& context) {
  return BuildOne(context, {Function::kSoftsign});
}
absl::Status BuildTan(NodeContext& context) { return BuildOne(context, {Function::kTan}); }

absl::Status BuildNeg(NodeContext& context) {
  const Operand src = context.input(0);
  if (src.constant == nullptr) {
    ABSL_ASSIGN_OR_RETURN(const Operand dst,
                          ActivationOf(context, {jit::EltwiseAlgorithm::kLinear, -1, 0}, src));
    return context.SetOutput(dst);
  }
  const std::string name = context.output_name() + "/zero";
  const ConstantPtr zero =
      src.constant->is_float ? MakeFloats(name, {}, {-0.0f}) : MakeInts(name, {}, {0});
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        ElementwiseOf(context, {Function::kSub}, {{zero, kNoValue, {}}, src}));
  return context.SetOutput(dst);
}

absl::Status BuildIsInf(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const int64_t negative, context.node.Int("detect_negative", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t positive, context.node.Int("detect_positive", 1));
  if (negative != 0 && positive != 0) return BuildOne(context, {Function::kIsInf});
  // Nothing equals the number that is none.
  const float sought = negative != 0 ? -INFINITY : positive != 0 ? INFINITY : NAN;
  const Operand number = {
      MakeFloats(context.output_name() + "/sought", {}, {sought}), kNoValue, {}};
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        ElementwiseOf(context, {Function::kEqual}, {context.input(0), number}));
  return context.SetOutput(dst);
}

absl::Status BuildSelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.67326319217681884765625f));
  ABSL_ASSIGN_OR_RETURN(const float gamma, context.node.Float("gamma", 1.05070102214813232421875f));
  return BuildOne(context, {Function::kSelu, alpha, gamma});
}

absl::Status BuildCelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.0f));
  return BuildOne(context, {Function::kCelu, alpha});
}

absl::Status BuildThresholdedRelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.0f));
  return BuildOne(context, {Function::kThresholdedRelu, alpha});
}

absl::Status BuildShrink(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float lambda, context.node.Float("lambd", 0.5f));
  ABSL_ASSIGN_OR_RETURN(const float bias, context.node.Float("bias", 0.0f));
  return BuildOne(context, {Function::kShrink, lambda, bias});
}

}  // namespace tilewire::graph
