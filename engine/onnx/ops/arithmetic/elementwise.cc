// SPDX-License-Identifier: Apache-2.0
//
// Operators that are one function of two or more tensors, element by element.
#include <climits>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// Opset 6: without `broadcast` the dims are equal; with it, those of input 1 stand at `axis` of
// input 0's.
absl::StatusOr<Operand> SecondOfOpset6(NodeContext& context) {
  const Dims &first = context.input(0).dims, &second = context.input(1).dims;
  ABSL_ASSIGN_OR_RETURN(const int64_t broadcast, context.node.Int("broadcast", 0));
  const int64_t last = static_cast<int64_t>(first.size()) - static_cast<int64_t>(second.size());
  ABSL_ASSIGN_OR_RETURN(int64_t axis, context.node.Int("axis", last));
  if (axis < 0) axis += static_cast<int64_t>(first.size());
  if (broadcast == 0) {
    if (first != second) return context.node.Invalid("dims that differ, without broadcast");
    return context.input(1);
  }
  if (axis < 0 || axis > last) return context.node.Invalid("axis ", axis);
  Dims dims(second);
  dims.resize(first.size() - axis, 1);
  return ReshapeOf(context, context.input(1), std::move(dims), "/broadcast");
}

absl::Status CheckOneType(const NodeContext& context, int first = 0) {
  for (int i = first + 1; i < context.input_count(); ++i) {
    if (context.Has(i) && context.IsInteger(i) != context.IsInteger(first))
      return context.node.Invalid("inputs of different types");
  }
  return absl::OkStatus();
}

absl::StatusOr<Operand> OfTwoInputs(NodeContext& context, Function function, bool swapped = false,
                                    absl::string_view suffix = "") {
  ABSL_RETURN_IF_ERROR(CheckOneType(context));
  std::vector<Operand> operands = {context.input(0), context.input(1)};
  const bool old = context.node.opset() < 7 && function != Function::kPRelu;
  if (old) {
    ABSL_ASSIGN_OR_RETURN(operands[1], SecondOfOpset6(context));
  }
  if (swapped) std::swap(operands[0], operands[1]);
  return ElementwiseOf(context, {function}, operands, suffix);
}

absl::Status BuildTwo(NodeContext& context, Function function, bool swapped = false) {
  return context.SetOutput(OfTwoInputs(context, function, swapped));
}
template <Function kFunction, bool kSwapped = false>
absl::Status BuildTwo(NodeContext& context) {
  return BuildTwo(context, kFunction, kSwapped);
}

// ((a f b) f c) ...
absl::StatusOr<Operand> ChainOf(NodeContext& context, Function function) {
  Operand result = context.input(0);
  for (int i = 1; i < context.input_count(); ++i) {
    const std::string suffix = i + 1 < context.input_count() ? absl::StrCat("/", i) : "";
    ABSL_ASSIGN_OR_RETURN(result,
                          ElementwiseOf(context, {function}, {result, context.input(i)}, suffix));
  }
  return result;
}

// One operation for computed tensors of one shape, which may be fused; else a chain.
absl::StatusOr<Operand> SumOf(NodeContext& context) {
  ABSL_RETURN_IF_ERROR(CheckOneType(context));
  const Dims dims = context.input(0).dims;
  std::vector<ValueId> srcs;
  for (int i = 0; i < context.input_count(); ++i) {
    const bool is_f32 = context.TypeOf(context.input(i)) == DataType::kF32;
    if (is_f32 && context.input(i).value != kNoValue && context.input(i).dims == dims)
      srcs.push_back(context.input(i).value);
  }
  if (srcs.size() < 2 || static_cast<int>(srcs.size()) < context.input_count())
    return ChainOf(context, Function::kAdd);
  return context.EmitOperand(network::Sum{}, std::move(srcs), dims);
}

template <Function kFunction>
absl::Status BuildChain(NodeContext& context) {
  ABSL_RETURN_IF_ERROR(CheckOneType(context));
  return context.SetOutput(ChainOf(context, kFunction));
}

// The quotient of integers is truncated towards zero. Rounding to f32 does not carry it up to the
// next integer, which is at least 1 / divisor away; integers beyond 2^24 are rounded anyway.
absl::Status BuildDiv(NodeContext& context) {
  if (context.AllConstant() || !context.IsInteger(0)) return BuildTwo(context, Function::kDiv);
  ABSL_ASSIGN_OR_RETURN(const Operand exact,
                        OfTwoInputs(context, Function::kDiv, /*swapped=*/false, "/exact"));
  if (context.TypeOf(exact) != DataType::kF32) return context.SetOutput(exact);
  return context.SetOutput(ElementwiseOf(context, {Function::kTruncate}, {exact}));
}

absl::Status BuildMod(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const int64_t fmod, context.node.Int("fmod", 0));
  return BuildTwo(context, fmod == 0 ? Function::kFloorMod : Function::kMod);
}

// Converts integers to floats, because the two sides of a power may differ in type.
absl::StatusOr<Operand> AsFloats(const Operand& operand) {
  if (operand.constant == nullptr || operand.constant->is_float) return operand;
  ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*operand.constant));
  return OperandOf(
      MakeFloats(operand.constant->name, operand.dims, {held.values.begin(), held.values.end()}));
}

// The result has the base's type: integers are truncated towards zero.
absl::StatusOr<Operand> MixedPow(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Operand base, AsFloats(context.input(0)));
  ABSL_ASSIGN_OR_RETURN(const Operand exponent, AsFloats(context.input(1)));
  const bool cuts = context.IsInteger(0);
  ABSL_ASSIGN_OR_RETURN(const Operand power, ElementwiseOf(context, {Function::kPower},
                                                           {base, exponent}, cuts ? "/exact" : ""));
  if (!cuts) return power;
  ABSL_ASSIGN_OR_RETURN(const Operand whole,
                        ElementwiseOf(context, {Function::kTruncate}, {power}));
  if (whole.constant == nullptr) return whole;
  const absl::Span<const float> floats = whole.constant->floats;
  for (float number : floats) {
    if (!(std::abs(number) < 9.2e18f)) return context.node.Invalid("a number beyond the integers");
  }
  return OperandOf(MakeInts(whole.constant->name, whole.dims, {floats.begin(), floats.end()}));
}

// A power whose base or exponent has a type of its own. The base's type is the result's; a real
// power of integers is taken in f64 and cut.
absl::StatusOr<Operand> PowInType(NodeContext& context) {
  const auto as = [&](int i, DataType type) -> absl::StatusOr<Operand> {
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.InType(context.input(i), type));
    return Operand{nullptr, value, context.input(i).dims};
  };
  const DataType own = context.TypeOf(context.input(0));
  if (own == DataType::kF32) {
    ABSL_ASSIGN_OR_RETURN(const Operand exponent, as(1, DataType::kF32));
    return ElementwiseOf(context, {Function::kPower}, {context.input(0), exponent});
  }
  if (own == DataType::kF64 || context.IsInteger(1))
    return ElementwiseOf(context, {Function::kPower}, {context.input(0), context.input(1)});
  ABSL_ASSIGN_OR_RETURN(const Operand base, as(0, DataType::kF64));
  ABSL_ASSIGN_OR_RETURN(const Operand exponent, as(1, DataType::kF64));
  ABSL_ASSIGN_OR_RETURN(const Operand power,
                        ElementwiseOf(context, {Function::kPower}, {base, exponent}, "/exact"));
  ABSL_ASSIGN_OR_RETURN(const ValueId cut, context.InType(power, own));
  return Operand{nullptr, cut, power.dims};
}

// Known powers have kernels.
absl::Status BuildPow(NodeContext& context) {
  const DataType base = context.TypeOf(context.input(0)), other = context.TypeOf(context.input(1));
  if (base != DataType::kF32 || (other != DataType::kF32 && !context.IsInteger(0)))
    return context.SetOutput(PowInType(context));
  const ConstantPtr& exponent = context.input(1).constant;
  if (exponent != nullptr && exponent->count() == 1 && !context.IsInteger(0) &&
      context.input(0).constant == nullptr &&
      exponent->dims.size() <= context.input(0).dims.size()) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, InMemory(exponent));
    const float power = known->is_float ? known->floats[0] : static_cast<float>(known->ints[0]);
    const functions::EltwiseOp op = power == 2
                                        ? functions::EltwiseOp{EltwiseAlgorithm::kSquare}
                                        : functions::EltwiseOp{EltwiseAlgorithm::kPow, 1, power};
    return context.SetOutput(ActivationOf(context, op, context.input(0)));
  }
  if (context.IsInteger(0) == context.IsInteger(1) &&
      (context.AllConstant() || !context.IsInteger(0))) {
    return BuildTwo(context, Function::kPower);
  }
  return context.SetOutput(MixedPow(context));
}

// One known slope is LeakyRelu's. It is broadcast to the channels where it has one dimension only
// and that is their number.
absl::Status BuildPRelu(NodeContext& context) {
  const Dims &dims = context.input(0).dims, &slope = context.input(1).dims;
  const ConstantPtr& known = context.input(1).constant;
  if (known != nullptr && known->count() == 1 && slope.size() <= dims.size() &&
      context.input(0).constant == nullptr && context.TypeOf(context.input(0)) == DataType::kF32) {
    ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*known));
    return FinishActivation(context, {EltwiseAlgorithm::kRelu, held.values[0]});
  }
  if (slope.size() == 1 && dims.size() > 2 && slope[0] == dims[1] && context.node.opset() < 7) {
    Dims channel(dims.size() - 1, 1);
    channel[0] = slope[0];
    ABSL_ASSIGN_OR_RETURN(const Operand raised,
                          ReshapeOf(context, context.input(1), std::move(channel), "/slope"));
    return context.SetOutput(
        ElementwiseOf(context, {Function::kPRelu}, {context.input(0), raised}));
  }
  return BuildTwo(context, Function::kPRelu);
}

absl::Status BuildSum(NodeContext& context) { return context.SetOutput(SumOf(context)); }

absl::Status BuildMean(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Operand sum, SumOf(context));
  const float count = static_cast<float>(context.input_count());
  const Operand divisor = context.KnownFloat("/count", count);
  return context.SetOutput(ElementwiseOf(context, {Function::kDiv}, {sum, divisor}, "/mean"));
}

absl::Status BuildWhere(NodeContext& context) {
  ABSL_RETURN_IF_ERROR(CheckOneType(context, /*first=*/1));
  Operand truth = context.input(0);
  if (!context.AllConstant() && truth.constant != nullptr && !truth.constant->is_float) {
    const std::vector<int64_t>& ints = truth.constant->ints;
    truth.constant = MakeFloats(truth.constant->name, truth.dims, {ints.begin(), ints.end()});
  }
  return context.SetOutput(
      ElementwiseOf(context, {Function::kWhere}, {truth, context.input(1), context.input(2)}));
}

}  // namespace

TILEWIRE_OPERATORS(Elementwise) = {
    TrainsTensors({"Add", 1, 2, 2, "axis broadcast", BuildTwo<Function::kAdd>, Folds::kInMemory}),
    {"And", 1, 2, 2, "axis broadcast", BuildTwo<Function::kAnd>, Folds::kInMemory, TruthValues},
    TrainsTensors({"Div", 1, 2, 2, "axis broadcast", BuildDiv, Folds::kInMemory}),
    {"Equal", 1, 2, 2, "axis broadcast", BuildTwo<Function::kEqual>, Folds::kInMemory, TruthValues},
    {"Greater", 1, 2, 2, "axis broadcast", BuildTwo<Function::kLess, /*swapped=*/true>,
     Folds::kInMemory, TruthValues},
    {"GreaterOrEqual", 12, 2, 2, "", BuildTwo<Function::kLessOrEqual, /*swapped=*/true>,
     Folds::kInMemory, TruthValues},
    {"Less", 1, 2, 2, "axis broadcast", BuildTwo<Function::kLess>, Folds::kInMemory, TruthValues},
    {"LessOrEqual", 12, 2, 2, "", BuildTwo<Function::kLessOrEqual>, Folds::kInMemory, TruthValues},
    {"Max", 1, 1, INT_MAX, "", BuildChain<Function::kMax>, Folds::kInMemory},
    OfReals({"Mean", 1, 1, INT_MAX, "", BuildMean}),
    {"Min", 1, 1, INT_MAX, "", BuildChain<Function::kMin>, Folds::kInMemory},
    {"Mod", 10, 2, 2, "fmod", BuildMod, Folds::kInMemory},
    TrainsTensors({"Mul", 1, 2, 2, "axis broadcast", BuildTwo<Function::kMul>, Folds::kInMemory}),
    {"Or", 1, 2, 2, "axis broadcast", BuildTwo<Function::kOr>, Folds::kInMemory, TruthValues},
    TrainsWeights({"PRelu", 1, 2, 2, "", BuildPRelu, Folds::kInMemory}),
    {"Pow", 1, 2, 2, "axis broadcast", BuildPow, Folds::kInMemory},
    TrainsTensors({"Sub", 1, 2, 2, "axis broadcast", BuildTwo<Function::kSub>, Folds::kInMemory}),
    TrainsTensors({"Sum", 1, 1, INT_MAX, "", BuildSum}),
    {"Where", 9, 3, 3, "", BuildWhere, Folds::kInMemory, LikeSecondInput},
    {"Xor", 1, 2, 2, "axis broadcast", BuildTwo<Function::kXor>, Folds::kInMemory, TruthValues},
};

}  // namespace tilewire::reader
