// SPDX-License-Identifier: Apache-2.0
//
// From real numbers to 8-bit integers and back.
#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/quantized/quantization_params.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// The inputs, and the blocks of opset 21. What only float8 has a use for changes nothing.
absl::StatusOr<QuantizationInputs> ReadInputs(const Node& node) {
  QuantizationInputs inputs = {.scale = 1, .zero_point = 2};
  ABSL_ASSIGN_OR_RETURN(inputs.block, node.Int("block_size", 0));
  if (inputs.block < 0) return node.Invalid("block_size ", inputs.block);
  ABSL_ASSIGN_OR_RETURN(const int64_t precision, node.Int("precision", 0));
  if (precision != 0 && precision != onnx::TensorProto::FLOAT)
    return node.Unimplemented("precision ", ElementTypeText(precision));
  ABSL_RETURN_IF_ERROR(CheckSaturate(node));
  return inputs;
}

// The type that the zero point, or without one output_dtype, gives the result; u8 without either.
absl::StatusOr<DataType> TypeOfResult(const NodeContext& context) {
  const Node& node = context.node;
  constexpr char kSupported[] = "; supported are INT8, UINT8, INT16 and UINT16";
  ABSL_ASSIGN_OR_RETURN(const int64_t asked, node.Int("output_dtype", 0));
  const std::optional<DataType> named = TypeOfElements(asked);
  if (asked != 0 && !named) return node.Unimplemented("to ", ElementTypeText(asked), kSupported);
  if (asked != 0 && context.Has(2) && *named != context.ElementType(2))
    return node.Invalid("output_dtype is not the type of the zero point");
  if (context.Has(2) && context.input(2).constant != nullptr &&
      context.input(2).constant->has_few_bits)
    return node.Unimplemented("to fewer than 8 bits", kSupported);
  const DataType type = context.ElementTypeOfOutput(0);
  if (IsByte(type) || type == DataType::kU16 || type == DataType::kS16) return type;
  return node.Unimplemented("to ", DataTypeName(type), kSupported);
}

absl::Status BuildQuantizeLinear(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const QuantizationInputs inputs, ReadInputs(context.node));
  ABSL_ASSIGN_OR_RETURN(const int64_t axis, context.node.Int("axis", 1));
  ABSL_ASSIGN_OR_RETURN(const DataType type, TypeOfResult(context));
  if (src.constant != nullptr && !src.constant->is_float)
    return context.node.Unimplemented("of integers; supported is f32");
  std::optional<AxisQuantization> quantization;
  if (inputs.block == 0) {
    ABSL_ASSIGN_OR_RETURN(quantization, ReadQuantization(context, inputs, src.dims, axis));
  }
  return context.SetOutput(QuantizeOf(context, src, quantization, inputs, axis, type));
}

// Known integers with known blocks become real numbers when they are packed.
absl::StatusOr<Operand> DequantizeInBlocks(NodeContext& context, const Operand& src,
                                           const QuantizationInputs& inputs, int64_t axis) {
  ABSL_ASSIGN_OR_RETURN(const std::optional<Blocks> blocks,
                        ReadBlocks(context, inputs, src.dims, axis));
  if (src.constant == nullptr || !blocks)
    return DequantizeOf(context, src, std::nullopt, inputs, axis);
  ABSL_ASSIGN_OR_RETURN(ConstantPtr reals,
                        DequantizeBlocks(src.constant, *blocks, context.output_name()));
  return OperandOf(std::move(reals));
}

absl::Status BuildDequantizeLinear(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const QuantizationInputs inputs, ReadInputs(context.node));
  ABSL_ASSIGN_OR_RETURN(const int64_t to, context.node.Int("output_dtype", 0));
  const std::optional<DataType> type = TypeOfElements(to);
  if (to != 0 && (!type || !IsComputedInF32(*type)))
    return context.node.Unimplemented("to ", ElementTypeText(to),
                                      "; supported are FLOAT, FLOAT16 and BFLOAT16");
  ABSL_ASSIGN_OR_RETURN(const int64_t axis, context.node.Int("axis", 1));
  if (inputs.block > 0) return context.SetOutput(DequantizeInBlocks(context, src, inputs, axis));
  ABSL_ASSIGN_OR_RETURN(const std::optional<AxisQuantization> quantization,
                        ReadQuantization(context, inputs, src.dims, axis));
  return context.SetOutput(DequantizeOf(context, src, quantization, inputs, axis));
}

// One number of a QuantizationRange.
absl::StatusOr<Operand> PartOf(NodeContext& context, ValueId range, int64_t index,
                               absl::string_view suffix) {
  return SelectAlong(context, {nullptr, range, {2}}, 0, {{index, 1, 1}}, suffix);
}

absl::Status BuildDynamicQuantizeLinear(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(const ValueId range,
                        context.Emit(network::QuantizationRange{}, {src}, {2}, "/range"));
  ABSL_RETURN_IF_ERROR(context.SetOutput(context.Emit(network::DynamicQuantize{}, {src, range},
                                                      context.input(0).dims, "", DataType::kU8)));
  ABSL_ASSIGN_OR_RETURN(const Operand scale, PartOf(context, range, 0, "/scale"));
  ABSL_ASSIGN_OR_RETURN(const Operand zero, PartOf(context, range, 1, "/zero"));
  ABSL_ASSIGN_OR_RETURN(
      const ValueId zero_point,
      context.Emit(network::Quantize{}, {zero.value}, zero.dims, "/zero_point", DataType::kU8));
  const Operand rest[] = {scale, {nullptr, zero_point, zero.dims}};
  for (size_t i = 1; i < context.node.outputs.size() && i < 3; ++i) {
    if (context.node.outputs[i] == kNoTensor) continue;
    ABSL_ASSIGN_OR_RETURN(const Operand flat, ReshapeOf(context, rest[i - 1], {}, "/flat"));
    ABSL_RETURN_IF_ERROR(context.SetOutput(flat, static_cast<int>(i)));
  }
  return absl::OkStatus();
}

// All outputs but the scale are of integers.
DataType BytesButTheScale(const TypedNode&, int i) {
  return i == 1 ? DataType::kF32 : DataType::kU8;
}

DataType LikeScale(const TypedNode& node, int) { return node.named("output_dtype", node.input(1)); }

// The type of the zero point, or else of the attribute.
DataType LikeZeroPoint(const TypedNode& node, int) {
  return node.node.HasInput(2) ? node.input(2) : node.named("output_dtype", DataType::kU8);
}

}  // namespace

TILEWIRE_OPERATORS(QuantizeLinear) = {
    Quantized({"DequantizeLinear", 10, 2, 3, "axis block_size output_dtype", BuildDequantizeLinear,
               Folds::kInPlace, LikeScale}),
    Quantized({"DynamicQuantizeLinear", 11, 1, 1, "", BuildDynamicQuantizeLinear, Folds::kNever,
               BytesButTheScale}),
    Quantized({"QuantizeLinear", 10, 2, 3, "axis block_size output_dtype precision saturate",
               BuildQuantizeLinear, Folds::kInPlace, LikeZeroPoint}),
};

}  // namespace tilewire::reader
