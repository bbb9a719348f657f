// SPDX-License-Identifier: Apache-2.0
//
// Functions of one tensor, element by element, that are no activation of the kernels.
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

using Function = Elementwise::Function;

absl::Status LowerOne(NodeContext& context, const Elementwise& function) {
  ABSL_ASSIGN_OR_RETURN(const Operand dst, ElementwiseOf(context, function, {context.input(0)}));
  return context.SetOutput(dst);
}

}  // namespace

absl::Status LowerAcos(NodeContext& context) { return LowerOne(context, {Function::kAcos}); }
absl::Status LowerAcosh(NodeContext& context) { return LowerOne(context, {Function::kAcosh}); }
absl::Status LowerAsin(NodeContext& context) { return LowerOne(context, {Function::kAsin}); }
absl::Status LowerAsinh(NodeContext& context) { return LowerOne(context, {Function::kAsinh}); }
absl::Status LowerAtan(NodeContext& context) { return LowerOne(context, {Function::kAtan}); }
absl::Status LowerAtanh(NodeContext& context) { return LowerOne(context, {Function::kAtanh}); }
absl::Status LowerCeil(NodeContext& context) { return LowerOne(context, {Function::kCeil}); }
absl::Status LowerCos(NodeContext& context) { return LowerOne(context, {Function::kCos}); }
absl::Status LowerCosh(NodeContext& context) { return LowerOne(context, {Function::kCosh}); }
absl::Status LowerErf(NodeContext& context) { return LowerOne(context, {Function::kErf}); }
absl::Status LowerFloor(NodeContext& context) { return LowerOne(context, {Function::kFloor}); }
absl::Status LowerIsNaN(NodeContext& context) { return LowerOne(context, {Function::kIsNan}); }
absl::Status LowerLog(NodeContext& context) { return LowerOne(context, {Function::kLog}); }
absl::Status LowerNot(NodeContext& context) { return LowerOne(context, {Function::kNot}); }
absl::Status LowerReciprocal(NodeContext& context) {
  return LowerOne(context, {Function::kReciprocal});
}
absl::Status LowerRound(NodeContext& context) { return LowerOne(context, {Function::kRound}); }
absl::Status LowerSign(NodeContext& context) { return LowerOne(context, {Function::kSign}); }
absl::Status LowerSin(NodeContext& context) { return LowerOne(context, {Function::kSin}); }
absl::Status LowerSinh(NodeContext& context) { return LowerOne(context, {Function::kSinh}); }
absl::Status LowerSoftsign(NodeContext& context) {
  return LowerOne(context, {Function::kSoftsign});
}
absl::Status LowerTan(NodeContext& context) { return LowerOne(context, {Function::kTan}); }

absl::Status LowerNeg(NodeContext& context) {
  const Operand src = context.input(0);
  if (src.constant == nullptr) {
    ABSL_ASSIGN_OR_RETURN(const Operand dst,
                          EltwiseOf(context, {jit::EltwiseAlgorithm::kLinear, -1, 0}, src));
    return context.SetOutput(dst);
  }
  const std::string name = context.output_name() + "/zero";
  const ConstantPtr zero =
      src.constant->is_float ? MakeFloats(name, {}, {-0.0f}) : MakeInts(name, {}, {0});
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        ElementwiseOf(context, {Function::kSub}, {{zero, kNoValue, {}}, src}));
  return context.SetOutput(dst);
}

absl::Status LowerIsInf(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const int64_t negative, context.node.Int("detect_negative", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t positive, context.node.Int("detect_positive", 1));
  if (negative != 0 && positive != 0) return LowerOne(context, {Function::kIsInf});
  // Nothing equals the number that is none.
  const float sought = negative != 0 ? -INFINITY : positive != 0 ? INFINITY : NAN;
  const Operand number = {
      MakeFloats(context.output_name() + "/sought", {}, {sought}), kNoValue, {}};
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        ElementwiseOf(context, {Function::kEqual}, {context.input(0), number}));
  return context.SetOutput(dst);
}

absl::Status LowerSelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.67326319217681884765625f));
  ABSL_ASSIGN_OR_RETURN(const float gamma, context.node.Float("gamma", 1.05070102214813232421875f));
  return LowerOne(context, {Function::kSelu, alpha, gamma});
}

absl::Status LowerCelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.0f));
  return LowerOne(context, {Function::kCelu, alpha});
}

absl::Status LowerThresholdedRelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.0f));
  return LowerOne(context, {Function::kThresholdedRelu, alpha});
}

absl::Status LowerShrink(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float lambda, context.node.Float("lambd", 0.5f));
  ABSL_ASSIGN_OR_RETURN(const float bias, context.node.Float("bias", 0.0f));
  return LowerOne(context, {Function::kShrink, lambda, bias});
}

}  // namespace tilewire::graph
