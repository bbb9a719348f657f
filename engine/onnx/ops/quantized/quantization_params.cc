// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/quantized/quantization_params.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/arithmetic/small_numbers.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {

using network::DequantizeElement;
namespace {

constexpr int kDeepest = 3;  // longest chain of conversions that is computed on demand
constexpr int64_t kLargestZeroPoint = 65535;

bool IsComputed(const NodeContext& context, int input) {
  return input >= 0 && context.Has(input) && context.input(input).constant == nullptr;
}

bool IsGiven(const NodeContext& context, int input) { return input >= 0 && context.Has(input); }

absl::StatusOr<std::vector<float>> ReadScales(const NodeContext& context, int input) {
  if (!IsGiven(context, input)) return std::vector<float>(1, 1.0f);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr scales, context.Floats(input));
  for (float scale : scales->floats) {
    if (!(scale > 0) || std::isinf(scale)) return context.node.Invalid("a scale of ", scale);
  }
  return std::vector<float>(scales->floats.begin(), scales->floats.end());
}

absl::StatusOr<std::vector<int64_t>> ReadZeroPoints(const NodeContext& context, int input) {
  if (!IsGiven(context, input)) return std::vector<int64_t>(1, 0);
  const Operand& given = context.input(input);
  if (given.constant != nullptr && given.constant->is_float) {  // of 4 or 8 bits
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr zeros, context.Floats(input));
    return std::vector<int64_t>(zeros->floats.begin(), zeros->floats.end());
  }
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr zero_points, context.Ints(input));
  for (int64_t zero_point : zero_points->ints) {
    if (std::abs(zero_point) > kLargestZeroPoint)
      return context.node.Invalid("a zero point of ", zero_point);
  }
  return zero_points->ints;
}

absl::Status WrongBlocks(const NodeContext& context, const Dims& given, const Dims& dims, int axis,
                         int64_t block) {
  return context.node.Invalid("scales or zero points of dims ", DimsToString(given),
                              " for blocks of ", block, " along axis ", axis, " of ",
                              DimsToString(dims), "; expected are ",
                              DimsToString(DimsOfScales(dims, axis, block)));
}

// Calls visit(element, grid) for every element, row-major.
template <typename Visit>
void ForEachQuantized(const Dims& dims, const AxisQuantization& quantization, Visit visit) {
  const int64_t count = ElementCount(dims).value_or(0);
  int64_t inner = count;  // neighbours on one grid
  if (quantization.params.size() > 1) {
    inner = 1;
    for (size_t d = quantization.axis + 1; d < dims.size(); ++d) inner *= dims[d];
  }
  for (int64_t first = 0, run = 0; first < count; first += inner, ++run) {
    const network::QuantizationParams& params =
        quantization.params[run % quantization.params.size()];
    for (int64_t i = first; i < first + inner; ++i) visit(i, params);
  }
}

// A constant converted from another one, computed anew at each load.
class Converted final : public network::StoredNumbers {
 public:
  // `type` is what to quantize to; nullopt for the real numbers themselves.
  Converted(ConstantPtr src, AxisQuantization quantization, std::optional<ElementType> type,
            bool saturates)
      : src_(std::move(src)),
        quantization_(std::move(quantization)),
        type_(type),
        saturates_(saturates),
        depth_(DepthOf(*src_) + 1) {}

  // The number of nested conversions that a Load() goes through.
  static int DepthOf(const Constant& constant) {
    const auto* converted = dynamic_cast<const Converted*>(constant.stored.get());
    return converted == nullptr ? 0 : converted->depth_;
  }

  absl::StatusOr<HeldFloats> Load() const override {
    ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*src_));
    auto converted = std::make_shared<std::vector<float>>(held.values.size());
    ForEachQuantized(
        src_->dims, quantization_, [&](int64_t i, const network::QuantizationParams& params) {
          const float from = held.values[i];
          (*converted)[i] = type_ ? Quantized(from, params) : DequantizeElement(from, params);
        });
    return HeldFloats{*converted, converted};
  }

 private:
  float Quantized(float from, const network::QuantizationParams& params) const {
    const SmallType small = type_->small();
    if (IsSmallFloat(small)) return NearestSmall(small, from / params.scale, saturates_);
    const float byte = network::QuantizeElement(from, params, *type_);
    return type_->is_small() ? std::clamp(byte, LeastOf(small), LargestOf(small)) : byte;
  }

  const ConstantPtr src_;
  const AxisQuantization quantization_;
  const std::optional<ElementType> type_;
  const bool saturates_;
  const int depth_;
};

absl::StatusOr<ConstantPtr> Requantized(const ConstantPtr& src,
                                        const AxisQuantization& quantization,
                                        std::optional<ElementType> type, bool saturates,
                                        std::string name) {
  auto constant = std::make_shared<Constant>();
  constant->name = std::move(name);
  constant->dims = src->dims;
  constant->is_float = !type || IsSmallFloat(type->small());
  if (!constant->is_float) constant->integers = *type;
  auto converted = std::make_shared<const Converted>(src, quantization, type, saturates);
  if (src->count() >= kFewConverted && Converted::DepthOf(*src) < kDeepest) {
    constant->stored = std::move(converted);
    return constant;
  }
  ABSL_ASSIGN_OR_RETURN(HeldFloats held, converted->Load());
  if (!constant->is_float) {
    constant->ints.assign(held.values.begin(), held.values.end());
  } else {
    constant->floats = held.values;
    constant->owner = std::move(held.owner);
  }
  return constant;
}

// A parameter of blocks with an element for each index of `axis` in `dims`.
absl::StatusOr<Operand> Spread(NodeContext& context, const Operand& parameter, const Dims& dims,
                               int axis, int64_t block, absl::string_view suffix) {
  if (parameter.dims != DimsOfScales(dims, axis, block))
    return WrongBlocks(context, parameter.dims, dims, axis, block);
  std::vector<int64_t> from;
  for (int64_t i = 0; i < dims[axis]; ++i) from.push_back(i / block);
  return SelectAlong(context, parameter, axis, RunsOf(from), absl::StrCat(suffix, "/spread"));
}

// A scale or zero point as an operand of floats that is broadcast to `dims`, along all axes but its
// own.
absl::StatusOr<Operand> Parameter(NodeContext& context, int input, const Dims& dims, int64_t axis,
                                  int64_t block, float absent, absl::string_view suffix) {
  const size_t rank = dims.size();
  const std::string name = absl::StrCat(context.output_name(), suffix);
  if (!IsGiven(context, input)) return Operand{MakeFloats(name, {}, {absent}), kNoValue, {}};
  Operand parameter = context.input(input);
  if (parameter.constant == nullptr) {
    ABSL_ASSIGN_OR_RETURN(parameter.value, context.Numbers(parameter));
  } else if (!parameter.constant->is_float) {
    ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*parameter.constant));
    parameter.constant = MakeFloats(name, parameter.dims,
                                    std::vector<float>(held.values.begin(), held.values.end()));
  }
  if (block == 0 && ElementCount(parameter.dims) == 1)
    return ReshapeOf(context, parameter, {}, suffix);
  ABSL_ASSIGN_OR_RETURN(const int at, NormalizeAxis(context.node, axis, rank));
  if (block > 0) return Spread(context, parameter, dims, at, block, suffix);
  Dims raised(rank - at, 1);
  if (parameter.dims.size() != 1) return context.node.Invalid("scales or zero points of some axes");
  raised[0] = parameter.dims[0];
  return ReshapeOf(context, parameter, std::move(raised), suffix);
}

struct Parameters {
  Operand scale, zero_point;
};

absl::StatusOr<Parameters> ParametersOf(NodeContext& context, QuantizationInputs inputs,
                                        const Operand& src, int64_t axis) {
  Parameters by;
  ABSL_ASSIGN_OR_RETURN(
      by.scale, Parameter(context, inputs.scale, src.dims, axis, inputs.block, 1, "/scale"));
  ABSL_ASSIGN_OR_RETURN(by.zero_point, Parameter(context, inputs.zero_point, src.dims, axis,
                                                 inputs.block, 0, "/zero_point"));
  return by;
}

}  // namespace

absl::StatusOr<std::optional<AxisQuantization>> ReadQuantization(const NodeContext& context,
                                                                 QuantizationInputs inputs,
                                                                 const Dims& dims, int64_t axis) {
  if (IsComputed(context, inputs.scale) || IsComputed(context, inputs.zero_point))
    return std::nullopt;
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> scales, ReadScales(context, inputs.scale));
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> zero_points,
                        ReadZeroPoints(context, inputs.zero_point));
  const size_t count = std::max(scales.size(), zero_points.size());
  for (const size_t size : {scales.size(), zero_points.size()}) {
    if (size != 1 && size != count) return context.node.Invalid("scales and zero points differ");
    if (size == 0) return context.node.Invalid("scales or zero points without elements");
  }
  AxisQuantization result;
  result.params.resize(count);
  for (size_t i = 0; i < count; ++i) {
    result.params[i] = {scales[scales.size() == 1 ? 0 : i],
                        static_cast<int32_t>(zero_points[zero_points.size() == 1 ? 0 : i])};
  }
  if (count == 1) return result;
  ABSL_ASSIGN_OR_RETURN(result.axis, NormalizeAxis(context.node, axis, dims.size()));
  if (static_cast<int64_t>(count) != dims[result.axis]) {
    return context.node.Invalid(count, " scales along axis ", result.axis, " of ",
                                DimsToString(dims));
  }
  return result;
}

absl::StatusOr<std::optional<Blocks>> ReadBlocks(const NodeContext& context,
                                                 QuantizationInputs inputs, const Dims& dims,
                                                 int64_t axis) {
  if (IsComputed(context, inputs.scale) || IsComputed(context, inputs.zero_point))
    return std::nullopt;
  Blocks blocks;
  ABSL_ASSIGN_OR_RETURN(blocks.axis, NormalizeAxis(context.node, axis, dims.size()));
  blocks.size = inputs.block;
  ABSL_ASSIGN_OR_RETURN(blocks.scales, context.Floats(inputs.scale));
  if (IsGiven(context, inputs.zero_point)) {
    ABSL_ASSIGN_OR_RETURN(blocks.zero_points, InMemory(context.input(inputs.zero_point).constant));
  }
  for (const ConstantPtr& given : {blocks.scales, blocks.zero_points}) {
    if (given != nullptr && given->dims != DimsOfScales(dims, blocks.axis, blocks.size))
      return WrongBlocks(context, given->dims, dims, blocks.axis, blocks.size);
  }
  for (const float scale : blocks.scales->floats) {  // of a block of zeros it may be 0
    if (!std::isfinite(scale)) return context.node.Invalid("a scale of ", scale);
  }
  return blocks;
}

absl::StatusOr<DataType> TypeOfZeroPoint(const NodeContext& context, int input) {
  if (!IsGiven(context, input)) return DataType::kU8;
  const Operand& zero_point = context.input(input);
  const DataType type = zero_point.constant != nullptr ? zero_point.constant->integers
                                                       : context.value(zero_point.value).type;
  if (IsByte(type)) return type;
  return context.node.Unimplemented("a zero point that is neither u8 nor s8");
}

absl::StatusOr<ConstantPtr> DequantizeConstant(const ConstantPtr& integers,
                                               const AxisQuantization& quantization,
                                               std::string name) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr floats, Requantized(integers, quantization, std::nullopt,
                                                              /*saturates=*/true, std::move(name)));
  auto constant = std::make_shared<Constant>(*floats);
  constant->quantized = std::make_shared<const network::Quantized>(
      network::Quantized{integers, quantization.axis, quantization.params});
  return constant;
}

absl::StatusOr<ConstantPtr> QuantizeConstant(const ConstantPtr& floats,
                                             const AxisQuantization& quantization, ElementType type,
                                             std::string name, bool saturates) {
  return Requantized(floats, quantization, type, saturates, std::move(name));
}

absl::StatusOr<Operand> DequantizeOf(NodeContext& context, const Operand& src,
                                     const std::optional<AxisQuantization>& quantization,
                                     QuantizationInputs inputs, int64_t axis,
                                     absl::string_view suffix) {
  if (quantization && src.constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(ConstantPtr constant,
                          DequantizeConstant(src.constant, *quantization,
                                             absl::StrCat(context.output_name(), suffix)));
    return Operand{std::move(constant), kNoValue, src.dims};
  }
  const DataType type = context.TypeOf(src);
  if (quantization && (type == DataType::kF32 || IsByte(type)))
    return context.EmitOperand(network::Dequantize{quantization->axis, quantization->params},
                               {src.value}, src.dims, suffix);
  ABSL_ASSIGN_OR_RETURN(const Parameters by, ParametersOf(context, inputs, src, axis));
  ABSL_ASSIGN_OR_RETURN(const ValueId numbers, context.InType(src, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(
      const Operand difference,
      ElementwiseOf(context, {Function::kSub}, {{nullptr, numbers, src.dims}, by.zero_point},
                    "/difference"));
  return ElementwiseOf(context, {Function::kMul}, {difference, by.scale}, suffix);
}

absl::StatusOr<Operand> QuantizeOf(NodeContext& context, const Operand& src,
                                   const std::optional<AxisQuantization>& quantization,
                                   QuantizationInputs inputs, int64_t axis, ElementType type,
                                   absl::string_view suffix, bool saturates) {
  if (quantization && (IsByte(type) || type.is_small()) && src.constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(ConstantPtr constant,
                          QuantizeConstant(src.constant, *quantization, type,
                                           absl::StrCat(context.output_name(), suffix), saturates));
    return Operand{std::move(constant), kNoValue, src.dims};
  }
  if (quantization && IsByte(type) && !type.is_small()) {
    ABSL_ASSIGN_OR_RETURN(const ValueId numbers, context.AsValue(src));
    return context.EmitOperand(network::Quantize{quantization->axis, quantization->params},
                               {numbers}, src.dims, suffix, type);
  }
  ABSL_ASSIGN_OR_RETURN(const Parameters by, ParametersOf(context, inputs, src, axis));
  return QuantizeBy(context, src, by.scale, by.zero_point, type, suffix, saturates);
}

absl::StatusOr<Operand> QuantizeBy(NodeContext& context, const Operand& src, const Operand& scale,
                                   const Operand& zero_point, ElementType type,
                                   absl::string_view suffix, bool saturates) {
  ABSL_ASSIGN_OR_RETURN(const Operand quotient,
                        ElementwiseOf(context, {Function::kDiv}, {src, scale}, "/quotient"));
  if (IsSmallFloat(type.small()))
    return NearestSmallOf(context, quotient, type.small(), saturates, suffix);
  ABSL_ASSIGN_OR_RETURN(const Operand rounded,
                        ElementwiseOf(context, {Function::kRound}, {quotient}, "/rounded"));
  ABSL_ASSIGN_OR_RETURN(const Operand shifted, ElementwiseOf(context, {Function::kAdd},
                                                             {rounded, zero_point}, "/shifted"));
  if (type.is_small()) return SmallIntegersOf(context, shifted, type.small(), suffix);
  if (!IsByte(type)) {
    const bool is_signed = type == DataType::kS16;
    return ActivationOf(
        context,
        {EltwiseAlgorithm::kClip, is_signed ? -32768.0f : 0.0f, is_signed ? 32767.0f : 65535.0f},
        shifted, suffix);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId numbers, context.AsValue(shifted));
  return context.EmitOperand(network::Quantize{}, {numbers}, shifted.dims, suffix, type);
}

}  // namespace tilewire::reader
