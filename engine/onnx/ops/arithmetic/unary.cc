// SPDX-License-Identifier: Apache-2.0
//
// Mathematical functions of one tensor, element by element, that are more than a row of
// engine/functions/functions.inc says (functions.cc has those). Activations are in activation.cc,
// functions of several tensors in elementwise.cc.

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// A power of 1/2, which the pass for layer normalization looks for (RootOf()); the root of -0 is 0
// then.
absl::Status BuildSqrt(NodeContext& context) {
  if (context.input(0).value != kNoValue)
    return FinishActivation(context, {EltwiseAlgorithm::kPow, 1, 0.5f});
  return FinishElementwise(context, {Function::kSquareRoot});
}

absl::Status BuildNeg(NodeContext& context) {
  const Operand src = context.input(0);
  if (src.constant == nullptr) return context.SetOutput(LinearOf(context, src, -1, 0));
  const std::string name = context.output_name() + "/zero";
  const ConstantPtr zero =
      src.constant->is_float ? MakeFloats(name, {}, {-0.0f}) : MakeInts(name, {}, {0});
  return context.SetOutput(ElementwiseOf(context, {Function::kSub}, {{zero, kNoValue, {}}, src}));
}

absl::Status BuildIsInf(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const int64_t negative, context.node.Int("detect_negative", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t positive, context.node.Int("detect_positive", 1));
  if (negative != 0 && positive != 0) return FinishElementwise(context, {Function::kIsInf});
  // NaN is the only value that does not equal itself.
  const float sought = negative != 0 ? -INFINITY : positive != 0 ? INFINITY : NAN;
  const Operand number = context.KnownFloat("/sought", sought);
  return context.SetOutput(ElementwiseOf(context, {Function::kEqual}, {context.input(0), number}));
}

}  // namespace

TILEWIRE_OPERATORS(Unary) = {
    {"IsInf", 10, 1, 1, "detect_negative detect_positive", BuildIsInf, Folds::kInMemory,
     TruthValues},
    {"Neg", 1, 1, 1, "", BuildNeg, Folds::kInMemory},
    OfReals({"Sqrt", 1, 1, 1, "", BuildSqrt}),
};

}  // namespace tilewire::reader
