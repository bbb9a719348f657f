// SPDX-License-Identifier: Apache-2.0
//
// Mathematical functions of one tensor, element by element. Activations are in activation.cc,
// functions of several tensors in elementwise.cc.
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {

using network::kNoValue;
namespace {

using Function = network::Elementwise::Function;

absl::Status BuildAcos(NodeContext& context) {
  return FinishElementwise(context, {Function::kAcos});
}
absl::Status BuildAcosh(NodeContext& context) {
  return FinishElementwise(context, {Function::kAcosh});
}
absl::Status BuildAsin(NodeContext& context) {
  return FinishElementwise(context, {Function::kAsin});
}
absl::Status BuildAsinh(NodeContext& context) {
  return FinishElementwise(context, {Function::kAsinh});
}
absl::Status BuildAtan(NodeContext& context) {
  return FinishElementwise(context, {Function::kAtan});
}
absl::Status BuildAtanh(NodeContext& context) {
  return FinishElementwise(context, {Function::kAtanh});
}
absl::Status BuildCeil(NodeContext& context) {
  return FinishElementwise(context, {Function::kCeil});
}
absl::Status BuildCos(NodeContext& context) { return FinishElementwise(context, {Function::kCos}); }
absl::Status BuildCosh(NodeContext& context) {
  return FinishElementwise(context, {Function::kCosh});
}
absl::Status BuildErf(NodeContext& context) {
  return FinishThroughReals(context, {Function::kErf});
}
absl::Status BuildFloor(NodeContext& context) {
  return FinishElementwise(context, {Function::kFloor});
}
absl::Status BuildIsNaN(NodeContext& context) {
  return FinishElementwise(context, {Function::kIsNan});
}
absl::Status BuildLog(NodeContext& context) { return FinishElementwise(context, {Function::kLog}); }
absl::Status BuildNot(NodeContext& context) { return FinishElementwise(context, {Function::kNot}); }
absl::Status BuildReciprocal(NodeContext& context) {
  return FinishElementwise(context, {Function::kReciprocal});
}
absl::Status BuildRound(NodeContext& context) {
  return FinishElementwise(context, {Function::kRound});
}
absl::Status BuildSign(NodeContext& context) {
  return FinishElementwise(context, {Function::kSign});
}
absl::Status BuildSin(NodeContext& context) { return FinishElementwise(context, {Function::kSin}); }
absl::Status BuildSinh(NodeContext& context) {
  return FinishElementwise(context, {Function::kSinh});
}
absl::Status BuildTan(NodeContext& context) { return FinishElementwise(context, {Function::kTan}); }

absl::Status BuildAbs(NodeContext& context) {
  return FinishActivation(context, {functions::EltwiseAlgorithm::kAbs});
}
absl::Status BuildExp(NodeContext& context) {
  return FinishActivation(context, {functions::EltwiseAlgorithm::kExp});
}

// Uses a power, because the kernels' square root gives 0 for a negative number.
absl::Status BuildSqrt(NodeContext& context) {
  if (context.input(0).value != kNoValue)
    return FinishActivation(context, {functions::EltwiseAlgorithm::kPow, 1, 0.5f});
  return FinishElementwise(context, {Function::kSqrt});
}

absl::Status BuildNeg(NodeContext& context) {
  const Operand src = context.input(0);
  if (src.constant == nullptr) {
    ABSL_ASSIGN_OR_RETURN(const Operand dst, LinearOf(context, src, -1, 0));
    return context.SetOutput(dst);
  }
  const std::string name = context.output_name() + "/zero";
  const network::ConstantPtr zero = src.constant->is_float ? network::MakeFloats(name, {}, {-0.0f})
                                                           : network::MakeInts(name, {}, {0});
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        ElementwiseOf(context, {Function::kSub}, {{zero, kNoValue, {}}, src}));
  return context.SetOutput(dst);
}

absl::Status BuildIsInf(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const int64_t negative, context.node.Int("detect_negative", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t positive, context.node.Int("detect_positive", 1));
  if (negative != 0 && positive != 0) return FinishElementwise(context, {Function::kIsInf});
  // NaN is the only value that does not equal itself.
  const float sought = negative != 0 ? -INFINITY : positive != 0 ? INFINITY : NAN;
  const Operand number = {
      network::MakeFloats(context.output_name() + "/sought", {}, {sought}), kNoValue, {}};
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        ElementwiseOf(context, {Function::kEqual}, {context.input(0), number}));
  return context.SetOutput(dst);
}

}  // namespace

TILEWIRE_OPERATORS(Unary) = {
    {"Abs", 1, 1, 1, "", BuildAbs},
    OfReals({"Acos", 7, 1, 1, "", BuildAcos, Folds::kInMemory}),
    OfReals({"Acosh", 9, 1, 1, "", BuildAcosh, Folds::kInMemory}),
    OfReals({"Asin", 7, 1, 1, "", BuildAsin, Folds::kInMemory}),
    OfReals({"Asinh", 9, 1, 1, "", BuildAsinh, Folds::kInMemory}),
    OfReals({"Atan", 7, 1, 1, "", BuildAtan, Folds::kInMemory}),
    OfReals({"Atanh", 9, 1, 1, "", BuildAtanh, Folds::kInMemory}),
    {"Ceil", 1, 1, 1, "", BuildCeil, Folds::kInMemory},
    OfReals({"Cos", 7, 1, 1, "", BuildCos, Folds::kInMemory}),
    OfReals({"Cosh", 9, 1, 1, "", BuildCosh, Folds::kInMemory}),
    {"Erf", 9, 1, 1, "", BuildErf, Folds::kInMemory},
    OfReals({"Exp", 1, 1, 1, "", BuildExp}),
    {"Floor", 1, 1, 1, "", BuildFloor, Folds::kInMemory},
    {"IsInf", 10, 1, 1, "detect_negative detect_positive", BuildIsInf, Folds::kInMemory,
     TruthValues},
    {"IsNaN", 9, 1, 1, "", BuildIsNaN, Folds::kInMemory, TruthValues},
    OfReals({"Log", 1, 1, 1, "", BuildLog, Folds::kInMemory}),
    {"Neg", 1, 1, 1, "", BuildNeg, Folds::kInMemory},
    {"Not", 1, 1, 1, "", BuildNot, Folds::kInMemory, TruthValues},
    OfReals({"Reciprocal", 1, 1, 1, "", BuildReciprocal, Folds::kInMemory}),
    {"Round", 11, 1, 1, "", BuildRound, Folds::kInMemory},
    {"Sign", 9, 1, 1, "", BuildSign, Folds::kInMemory},
    OfReals({"Sin", 7, 1, 1, "", BuildSin, Folds::kInMemory}),
    OfReals({"Sinh", 9, 1, 1, "", BuildSinh, Folds::kInMemory}),
    OfReals({"Sqrt", 1, 1, 1, "", BuildSqrt}),
    OfReals({"Tan", 7, 1, 1, "", BuildTan, Folds::kInMemory}),
};

}  // namespace tilewire::reader
