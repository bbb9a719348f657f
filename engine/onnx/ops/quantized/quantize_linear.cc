// SPDX-License-Identifier: Apache-2.0
//
// From real numbers to integers of 2 to 16 bits, to f8 and f4, and back.
#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/quantized/quantization_params.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// The inputs, and the blocks of opset 21.
absl::StatusOr<QuantizationInputs> ReadInputs(const Node& node) {
  QuantizationInputs inputs = {.scale = 1, .zero_point = 2};
  ABSL_ASSIGN_OR_RETURN(inputs.block, node.Int("block_size", 0));
  if (inputs.block < 0) return node.Invalid("block_size ", inputs.block);
  ABSL_ASSIGN_OR_RETURN(const int64_t precision, node.Int("precision", 0));
  if (precision != 0 && precision != onnx::TensorProto::FLOAT)
    return node.Unimplemented("precision ", ElementTypeText(precision));
  return inputs;
}

// Real numbers have no zero point: theirs says the type alone.
absl::Status CheckZeroOfReals(const NodeContext& context) {
  if (!context.Has(2)) return absl::OkStatus();
  const ConstantPtr& given = context.input(2).constant;
  if (given == nullptr) return context.node.Unimplemented("a computed zero point of real numbers");
  ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*given));
  for (const float zero : held.values) {
    if (zero != 0) return context.node.Invalid("a zero point of ", zero, " for real numbers");
  }
  return absl::OkStatus();
}

// The type that the zero point, or without one output_dtype, gives the result; u8 without either.
absl::StatusOr<ElementType> TypeOfResult(const NodeContext& context) {
  const Node& node = context.node;
  constexpr char kSupported[] = "; supported are integers of at most 16 bits, f8 and f4";
  ABSL_ASSIGN_OR_RETURN(const int64_t asked, node.Int("output_dtype", 0));
  const std::optional<ElementType> named = ElementTypeOf(asked);
  if (asked != 0 && !named) return node.Unimplemented("to ", ElementTypeText(asked), kSupported);
  if (asked != 0 && context.Has(2) && !named->Is(context.ElementType(2)))
    return node.Invalid("output_dtype is not the type of the zero point");
  const ElementType type = context.ElementTypeOfOutput(0);
  if (IsSmallFloat(type.small())) {
    ABSL_RETURN_IF_ERROR(CheckZeroOfReals(context));
    return type;
  }
  if (IsByte(type) || type == DataType::kU16 || type == DataType::kS16) return type;
  return node.Unimplemented("to ", type.name(), kSupported);
}

// Known scales of blocks are positive.
absl::Status CheckDivisors(const NodeContext& context, const QuantizationInputs& inputs,
                           const Dims& dims, int64_t axis) {
  ABSL_ASSIGN_OR_RETURN(const std::optional<Blocks> blocks,
                        ReadBlocks(context, inputs, dims, axis));
  if (!blocks) return absl::OkStatus();
  for (const float scale : blocks->scales->floats) {
    if (!(scale > 0)) return context.node.Invalid("a scale of ", scale);
  }
  return absl::OkStatus();
}

absl::Status BuildQuantizeLinear(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const QuantizationInputs inputs, ReadInputs(context.node));
  ABSL_ASSIGN_OR_RETURN(const int64_t axis, context.node.Int("axis", 1));
  ABSL_ASSIGN_OR_RETURN(const ElementType type, TypeOfResult(context));
  ABSL_ASSIGN_OR_RETURN(const bool saturates, ReadSaturate(context.node));
  if (src.constant != nullptr && !src.constant->is_float)
    return context.node.Unimplemented("of integers; supported is f32");
  std::optional<AxisQuantization> quantization;
  if (inputs.block == 0) {
    ABSL_ASSIGN_OR_RETURN(quantization, ReadQuantization(context, inputs, src.dims, axis));
  } else {
    ABSL_RETURN_IF_ERROR(CheckDivisors(context, inputs, src.dims, axis));
  }
  return context.SetOutput(
      QuantizeOf(context, src, quantization, inputs, axis, type, "", saturates));
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
ElementType BytesButTheScale(const TypedNode&, int i) {
  return i == 1 ? DataType::kF32 : DataType::kU8;
}

ElementType LikeScale(const TypedNode& node, int) {
  return node.named("output_dtype", node.input(1));
}

// The type of the zero point, or else of the attribute.
ElementType LikeZeroPoint(const TypedNode& node, int) {
  if (node.node.HasInput(2)) return node.input(2);
  return node.named("output_dtype", ElementType(DataType::kU8));
}

}  // namespace

TILEWIRE_OPERATORS(QuantizeLinear) = {
    TakesSmall(Quantized({"DequantizeLinear", 10, 2, 3, "axis block_size output_dtype",
                          BuildDequantizeLinear, Folds::kInPlace, LikeScale})),
    Quantized({"DynamicQuantizeLinear", 11, 1, 1, "", BuildDynamicQuantizeLinear, Folds::kNever,
               BytesButTheScale}),
    TakesSmall(Quantized({"QuantizeLinear", 10, 2, 3,
                          "axis block_size output_dtype precision saturate", BuildQuantizeLinear,
                          Folds::kInPlace, LikeZeroPoint})),
};

}  // namespace tilewire::reader
