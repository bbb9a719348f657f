// SPDX-License-Identifier: Apache-2.0
//
// From real numbers to 8-bit integers and back.
#include "engine/base/status_macros.h"
#include "engine/graph/onnx_types.h"
#include "engine/graph/ops/element_functions.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/quantization_params.h"
#include "engine/graph/ops/select.h"

namespace tilewire::graph {
namespace {

using Function = Elementwise::Function;

constexpr QuantizationInputs kQuantizationInputs = {.scale = 1, .zero_point = 2};

// The smallest or largest element of input 0, and 0.
absl::StatusOr<Operand> Extremum(NodeContext& context, Reduce::Function reduction,
                                 Function with_zero, absl::string_view suffix) {
  const Operand& src = context.input(0);
  const Operand zero = OperandOf(MakeFloats(context.output_name() + "/zero", {}, {0.0f}));
  const std::vector<bool> all(src.dims.size(), true);
  ABSL_ASSIGN_OR_RETURN(const Operand reduced, ReduceOf(context, reduction, src, all, suffix));
  ABSL_ASSIGN_OR_RETURN(const Operand flat, ReshapeOf(context, reduced, {1}, suffix));
  return ElementwiseOf(context, {with_zero}, {flat, zero}, suffix);
}

// What opsets 19 to 25 added: blocks along an axis and types other than those of the inputs are
// refused; what only float8 has a use for changes nothing.
absl::Status CheckNewAttributes(const NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t block, node.Int("block_size", 0));
  if (block != 0) return node.Unimplemented(absl::StrCat("block_size ", block, "; supported is 0"));
  ABSL_ASSIGN_OR_RETURN(const int64_t precision, node.Int("precision", 0));
  if (precision != 0 && precision != onnx::TensorProto::FLOAT)
    return node.Unimplemented(absl::StrCat("precision ", ElementTypeText(precision)));
  return CheckSaturate(node);
}

// The type that the zero point, or without one output_dtype, gives the result; u8 without either.
absl::StatusOr<DataType> TypeOfResult(const NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const DataType type, TypeOfZeroPoint(context, 2));
  ABSL_ASSIGN_OR_RETURN(const int64_t asked, context.node.Int("output_dtype", 0));
  if (asked == 0) return type;
  const DataType named = EightBits(asked);
  if (named == DataType::kS32)
    return context.node.Unimplemented(
        absl::StrCat("to ", ElementTypeText(asked), "; supported are INT8 and UINT8"));
  if (context.Has(2) && named != type)
    return context.node.Invalid("output_dtype is not the type of the zero point");
  return named;
}

absl::Status BuildQuantizeLinear(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_RETURN_IF_ERROR(CheckNewAttributes(context));
  ABSL_ASSIGN_OR_RETURN(const int64_t axis, context.node.Int("axis", 1));
  ABSL_ASSIGN_OR_RETURN(const DataType type, TypeOfResult(context));
  if (src.constant != nullptr && !src.constant->is_float)
    return context.node.Unimplemented("of integers; supported is f32");
  ABSL_ASSIGN_OR_RETURN(const std::optional<AxisQuantization> quantization,
                        ReadQuantization(context, kQuantizationInputs, src.dims, axis));
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        QuantizeOf(context, src, quantization, kQuantizationInputs, axis, type));
  return context.SetOutput(dst);
}

absl::Status BuildDequantizeLinear(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_RETURN_IF_ERROR(CheckNewAttributes(context));
  ABSL_ASSIGN_OR_RETURN(const int64_t to, context.node.Int("output_dtype", 0));
  if (to != 0 && to != onnx::TensorProto::FLOAT)
    return context.node.Unimplemented(
        absl::StrCat("to ", ElementTypeText(to), "; supported is FLOAT"));
  ABSL_ASSIGN_OR_RETURN(const int64_t axis, context.node.Int("axis", 1));
  if (src.constant != nullptr && src.constant->is_float)
    return context.node.Invalid("input 0 is not of integers");
  ABSL_ASSIGN_OR_RETURN(const std::optional<AxisQuantization> quantization,
                        ReadQuantization(context, kQuantizationInputs, src.dims, axis));
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        DequantizeOf(context, src, quantization, kQuantizationInputs, axis));
  return context.SetOutput(dst);
}

// scale = (max(x, 0) - min(x, 0)) / 255, or 1 where all elements are 0
// zero_point = saturate(round(-min(x, 0) / scale))
absl::Status BuildDynamicQuantizeLinear(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Operand low,
                        Extremum(context, Reduce::Function::kMin, Function::kMin, "/min"));
  ABSL_ASSIGN_OR_RETURN(const Operand high,
                        Extremum(context, Reduce::Function::kMax, Function::kMax, "/max"));
  const auto number = [&](float value, absl::string_view suffix) {
    return context.Emit(Literal{MakeFloats(context.output_name(), {1}, {value})}, {}, {1}, suffix);
  };
  ABSL_ASSIGN_OR_RETURN(const ValueId steps, number(255, "/steps"));
  ABSL_ASSIGN_OR_RETURN(const ValueId one, number(1, "/one"));
  ABSL_ASSIGN_OR_RETURN(const ValueId none, number(0, "/none"));
  const auto of = [](ValueId value) { return Operand{nullptr, value, {1}}; };
  ABSL_ASSIGN_OR_RETURN(const Operand range,
                        ElementwiseOf(context, {Function::kSub}, {high, low}, "/range"));
  ABSL_ASSIGN_OR_RETURN(const Operand step,
                        ElementwiseOf(context, {Function::kDiv}, {range, of(steps)}, "/step"));
  ABSL_ASSIGN_OR_RETURN(const Operand positive,
                        ElementwiseOf(context, {Function::kLess}, {of(none), step}, "/positive"));
  ABSL_ASSIGN_OR_RETURN(const Operand scale, ElementwiseOf(context, {Function::kWhere},
                                                           {positive, step, of(one)}, "/scale"));
  ABSL_ASSIGN_OR_RETURN(const Operand below,
                        ElementwiseOf(context, {Function::kSub}, {of(none), low}, "/below"));
  ABSL_ASSIGN_OR_RETURN(const Operand zero_point,
                        QuantizeBy(context, below, scale, of(none), DataType::kU8, "/zero_point"));
  ABSL_ASSIGN_OR_RETURN(const ValueId zero, context.Numbers(zero_point));
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        QuantizeBy(context, context.input(0), scale, of(zero), DataType::kU8));
  ABSL_RETURN_IF_ERROR(context.SetOutput(dst));
  const Operand rest[] = {scale, zero_point};
  for (size_t i = 1; i < context.node.outputs.size() && i < 3; ++i) {
    if (context.node.outputs[i] == kNoTensor) continue;
    ABSL_ASSIGN_OR_RETURN(const Operand flat, ReshapeOf(context, rest[i - 1], {}, "/flat"));
    ABSL_RETURN_IF_ERROR(context.SetOutput(flat, static_cast<int>(i)));
  }
  return absl::OkStatus();
}

// All outputs but the scale.
bool IntegersButTheScale(const NodeContext&, int i) { return i != 1; }

}  // namespace

TILEWIRE_OPERATORS(QuantizeLinear) = {
    {"DequantizeLinear", 10, 2, 3, "axis block_size output_dtype", BuildDequantizeLinear,
     Folds::kInPlace, RealNumbers},
    {"DynamicQuantizeLinear", 11, 1, 1, "", BuildDynamicQuantizeLinear, Folds::kNever,
     IntegersButTheScale},
    {"QuantizeLinear", 10, 2, 3, "axis block_size output_dtype precision saturate",
     BuildQuantizeLinear, Folds::kInPlace, Integers},
};

}  // namespace tilewire::graph
