// SPDX-License-Identifier: Apache-2.0
//
// Elementwise functions of one tensor. Names and parameters map to engine/jit/eltwise.h.
#include "engine/jit/eltwise.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

using jit::EltwiseAlgorithm;

absl::Status FinishEltwise(NodeContext& context, EltwiseAlgorithm algorithm, float alpha = 0,
                           float beta = 0) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  return context.Finish(Eltwise{{algorithm, alpha, beta}}, {src}, context.input(0).dims);
}

// A bound of Clip: an attribute before opset 11, then an optional input of one element.
absl::StatusOr<float> ReadBound(const NodeContext& context, int input, absl::string_view name,
                                float absent) {
  if (context.node.opset() < 11) return context.node.Float(name, absent);
  if (context.node.HasAttribute(name))
    return context.node.Invalid(absl::StrCat("unknown attribute '", name, "'"));
  if (!context.Has(input)) return absent;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr bound, context.Floats(input));
  if (bound->count() != 1) return context.node.Invalid(absl::StrCat(name, " is not one number"));
  return bound->floats[0];
}

}  // namespace

absl::Status LowerAbs(NodeContext& context) {
  return FinishEltwise(context, EltwiseAlgorithm::kAbs);
}
absl::Status LowerExp(NodeContext& context) {
  return FinishEltwise(context, EltwiseAlgorithm::kExp);
}
absl::Status LowerRelu(NodeContext& context) {
  return FinishEltwise(context, EltwiseAlgorithm::kRelu);
}
absl::Status LowerSigmoid(NodeContext& context) {
  return FinishEltwise(context, EltwiseAlgorithm::kLogistic);
}
absl::Status LowerSoftplus(NodeContext& context) {
  return FinishEltwise(context, EltwiseAlgorithm::kSoftRelu);
}
// Not the kernels' square root, which gives 0 for a negative number.
absl::Status LowerSqrt(NodeContext& context) {
  if (context.input(0).value != kNoValue)
    return FinishEltwise(context, EltwiseAlgorithm::kPow, 1, 0.5f);
  const Operand half = {MakeFloats(context.output_name() + "/half", {}, {0.5f}), kNoValue, {}};
  ABSL_ASSIGN_OR_RETURN(const Operand dst, ElementwiseOf(context, {Elementwise::Function::kPow},
                                                         {context.input(0), half}));
  return context.SetOutput(dst);
}
absl::Status LowerTanh(NodeContext& context) {
  return FinishEltwise(context, EltwiseAlgorithm::kTanh);
}

absl::Status LowerElu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.0f));
  return FinishEltwise(context, EltwiseAlgorithm::kElu, alpha);
}

absl::Status LowerLeakyRelu(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 0.01f));
  return FinishEltwise(context, EltwiseAlgorithm::kRelu, alpha);
}

absl::Status LowerHardSigmoid(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 0.2f));
  ABSL_ASSIGN_OR_RETURN(const float beta, context.node.Float("beta", 0.5f));
  return FinishEltwise(context, EltwiseAlgorithm::kHardSigmoid, alpha, beta);
}

absl::Status LowerHardSwish(NodeContext& context) {
  return FinishEltwise(context, EltwiseAlgorithm::kHardSwish, 1.0f / 6.0f, 0.5f);
}

absl::Status LowerClip(NodeContext& context) {
  constexpr float kMost = std::numeric_limits<float>::max();
  ABSL_ASSIGN_OR_RETURN(const float low, ReadBound(context, 1, "min", -kMost));
  ABSL_ASSIGN_OR_RETURN(const float high, ReadBound(context, 2, "max", kMost));
  if (low == 0 && high >= kMost) return FinishEltwise(context, EltwiseAlgorithm::kRelu);
  if (low == 0) return FinishEltwise(context, EltwiseAlgorithm::kBoundedRelu, high);
  return FinishEltwise(context, EltwiseAlgorithm::kClip, low, high);
}

}  // namespace tilewire::graph
