// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and products of 8-bit integers: real numbers between a Dequantize and a Quantize,
// which passes fold into operations on integers.
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/products/inner_product.h"
#include "engine/onnx/ops/products/matmul.h"
#include "engine/onnx/ops/quantized/quantization_params.h"
#include "engine/onnx/ops/shapes/moves.h"
#include "engine/onnx/ops/windows/convolution.h"

namespace tilewire::reader {

using network::QuantizationParams;
namespace {

// Input `i` as real numbers at run time. `axis` has grids of its own where there is more than one.
absl::StatusOr<ValueId> Source(NodeContext& context, int i, QuantizationInputs inputs, int64_t axis,
                               absl::string_view suffix = "/src") {
  const Operand src = context.input(i);
  ABSL_ASSIGN_OR_RETURN(const std::optional<AxisQuantization> quantization,
                        ReadQuantization(context, inputs, src.dims, axis));
  ABSL_ASSIGN_OR_RETURN(const Operand real,
                        DequantizeOf(context, src, quantization, inputs, axis, suffix));
  return context.AsValue(real);
}

// Input `i` as real numbers, known ones with the integers they are made of.
absl::StatusOr<Operand> RealWeights(NodeContext& context, int i, QuantizationInputs inputs,
                                    int64_t axis) {
  const Operand weights = context.input(i);
  if (weights.constant != nullptr && weights.constant->is_float)
    return context.node.Invalid("input ", i, " is not of integers");
  ABSL_ASSIGN_OR_RETURN(const std::optional<AxisQuantization> quantization,
                        ReadQuantization(context, inputs, weights.dims, axis));
  return DequantizeOf(context, weights, quantization, inputs, axis, "/weights");
}

// Integers that count products of a step of the source and one of the weights.
absl::StatusOr<Operand> KnownBias(const NodeContext& context, int i, float src_scale,
                                  const std::vector<QuantizationParams>& quantization) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr integers, context.Ints(i));
  std::vector<float> bias;
  for (size_t o = 0; o < integers->ints.size(); ++o) {
    const float scale =
        src_scale * quantization[quantization.size() == 1 ? 0 : o % quantization.size()].scale;
    bias.push_back(static_cast<float>(integers->ints[o]) * scale);
  }
  return context.KnownFloats("/bias", integers->dims, std::move(bias));
}

absl::StatusOr<Operand> ComputedBias(NodeContext& context, int i, int src_scale,
                                     int weights_scale) {
  ABSL_ASSIGN_OR_RETURN(const ValueId integers, context.Numbers(context.input(i)));
  Operand bias = {nullptr, integers, context.input(i).dims};
  for (int scale : {src_scale, weights_scale}) {
    const Function multiply = Function::kMul;
    ABSL_ASSIGN_OR_RETURN(bias, ElementwiseOf(context, {multiply}, {bias, context.input(scale)},
                                              absl::StrCat("/bias", scale)));
  }
  return bias;
}

// The bias of QLinearConv, if it has one.
absl::StatusOr<Operand> RealBias(NodeContext& context, QuantizationInputs of_src,
                                 QuantizationInputs of_weights) {
  constexpr int kBias = 8;
  if (!context.Has(kBias)) return Operand();
  ABSL_ASSIGN_OR_RETURN(const std::optional<AxisQuantization> src,
                        ReadQuantization(context, of_src, context.input(0).dims, 1));
  ABSL_ASSIGN_OR_RETURN(const std::optional<AxisQuantization> weights,
                        ReadQuantization(context, of_weights, context.input(3).dims, 0));
  if (src && src->params.size() != 1) return context.node.Invalid("input 1 is not one scale");
  if (src && weights && context.input(kBias).constant != nullptr)
    return KnownBias(context, kBias, src->params[0].scale, weights->params);
  return ComputedBias(context, kBias, of_src.scale, of_weights.scale);
}

// The product of real numbers; a right side that is one known matrix becomes weights.
absl::StatusOr<ValueId> Product(NodeContext& context, ValueId src, int right,
                                QuantizationInputs inputs, absl::string_view suffix = "") {
  const Operand given = context.input(right);
  const Operand left = {nullptr, src, context.value(src).dims};
  if (given.constant != nullptr && given.dims.size() == 2 && left.dims.size() >= 2) {
    ABSL_ASSIGN_OR_RETURN(const Operand weights, RealWeights(context, right, inputs, -1));
    if (weights.constant != nullptr) return EmitMatMul(context, src, weights.constant, suffix);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId matrix, Source(context, right, inputs, -1, "/right"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand product,
      MatMulOf(context, left, {nullptr, matrix, context.value(matrix).dims}, suffix));
  return product.value;
}

absl::Status FinishQuantized(NodeContext& context, ValueId real, QuantizationInputs inputs) {
  const Dims dims = context.value(real).dims;
  ABSL_ASSIGN_OR_RETURN(const DataType type, TypeOfZeroPoint(context, inputs.zero_point));
  ABSL_ASSIGN_OR_RETURN(const std::optional<AxisQuantization> quantization,
                        ReadQuantization(context, inputs, dims, -1));
  return context.SetOutput(
      QuantizeOf(context, {nullptr, real, dims}, quantization, inputs, -1, type));
}

absl::Status BuildQLinearConv(NodeContext& context) {
  const QuantizationInputs of_src = {.scale = 1, .zero_point = 2},
                           of_weights = {.scale = 4, .zero_point = 5};
  ABSL_ASSIGN_OR_RETURN(const ValueId src, Source(context, 0, of_src, 1));
  ABSL_ASSIGN_OR_RETURN(const Operand weights, RealWeights(context, 3, of_weights, 0));
  ABSL_ASSIGN_OR_RETURN(const Operand bias, RealBias(context, of_src, of_weights));
  ABSL_ASSIGN_OR_RETURN(const ValueId real, EmitConvolution(context, src, weights, bias, "/real"));
  return FinishQuantized(context, real, {.scale = 6, .zero_point = 7});
}

absl::Status BuildQLinearMatMul(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, Source(context, 0, {.scale = 1, .zero_point = 2}, -2));
  ABSL_ASSIGN_OR_RETURN(const ValueId real,
                        Product(context, src, 3, {.scale = 4, .zero_point = 5}, "/real"));
  return FinishQuantized(context, real, {.scale = 6, .zero_point = 7});
}

// Up to so many products of differences of 8-bit integers, sums are exact in f32.
constexpr int64_t kMostExactProducts = 258;  // 2^24 / 255^2

// Parts of so many bits, of differences of two bytes, have sums that are exact in f32; 0: none do.
int BitsOfExactParts(int64_t products) {
  int bits = 8;
  while (bits > 0 && products > (int64_t{1} << (24 - bits)) / 255) --bits;
  return bits;
}

// src / 2^bits, rounded down, and what is left over.
absl::StatusOr<std::pair<Operand, Operand>> DivideByPower(NodeContext& context, const Operand& src,
                                                          int bits, absl::string_view suffix) {
  const auto number = [&](float value) {
    return context.KnownFloat(absl::StrCat(suffix, value), value);
  };
  const float power = static_cast<float>(1 << bits);
  ABSL_ASSIGN_OR_RETURN(Operand high,
                        ElementwiseOf(context, {Function::kMul}, {src, number(1 / power)},
                                      absl::StrCat(suffix, "/quotient")));
  ABSL_ASSIGN_OR_RETURN(
      high, ElementwiseOf(context, {Function::kFloor}, {high}, absl::StrCat(suffix, "/high")));
  ABSL_ASSIGN_OR_RETURN(Operand low, ElementwiseOf(context, {Function::kMul}, {high, number(power)},
                                                   absl::StrCat(suffix, "/multiple")));
  ABSL_ASSIGN_OR_RETURN(
      low, ElementwiseOf(context, {Function::kSub}, {src, low}, absl::StrCat(suffix, "/low")));
  return std::pair(high, low);
}

// factor * (src convolved with the weights), in s32.
absl::StatusOr<Operand> IntegerConvolution(NodeContext& context, const Operand& src,
                                           const Operand& weights, int64_t factor,
                                           absl::string_view suffix) {
  ABSL_ASSIGN_OR_RETURN(const ValueId sums, EmitConvolution(context, src.value, weights, Operand(),
                                                            absl::StrCat(suffix, "/sums")));
  Operand dst = {nullptr, sums, context.value(sums).dims};
  ABSL_ASSIGN_OR_RETURN(dst.value, context.InType(dst, DataType::kS32));
  const Operand power =
      OperandOf(MakeInts(absl::StrCat(context.output_name(), suffix, "/factor"), {}, {factor}));
  return ElementwiseOf(context, {Function::kMul}, {dst, power}, absl::StrCat(suffix, "/part"));
}

// A convolution of so many products that f32 does not hold their sum: of `bits` bits of the source
// at a time, added in s32.
absl::StatusOr<Operand> SumOfParts(NodeContext& context, Operand src, const Operand& weights,
                                   int bits) {
  constexpr int kBitsOfDifference = 9;  // with the sign
  Operand sum;
  for (int shift = 0; shift < kBitsOfDifference; shift += bits) {
    const std::string suffix = absl::StrCat("/bits", shift);
    Operand part = src;
    if (shift + bits < kBitsOfDifference) {
      ABSL_ASSIGN_OR_RETURN(std::tie(src, part), DivideByPower(context, src, bits, suffix));
    }
    ABSL_ASSIGN_OR_RETURN(part, IntegerConvolution(context, part, weights, 1 << shift, suffix));
    if (shift == 0) {
      sum = part;
      continue;
    }
    ABSL_ASSIGN_OR_RETURN(
        sum, ElementwiseOf(context, {Function::kAdd}, {sum, part}, absl::StrCat(suffix, "/sum")));
  }
  return sum;
}

// The sums themselves, whatever their size; where a Cast alone reads them f32 may add, and round,
// long ones.
absl::Status BuildConvInteger(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, Source(context, 0, {.zero_point = 2}, 1));
  ABSL_ASSIGN_OR_RETURN(const Operand weights, RealWeights(context, 1, {.zero_point = 3}, 0));
  const Dims summed(weights.dims.begin() + (weights.dims.empty() ? 0 : 1), weights.dims.end());
  const int64_t products = ElementCount(summed).value_or(INT64_MAX);
  if (products > kMostExactProducts && !context.IsReadOnlyBy("Cast")) {
    const int bits = BitsOfExactParts(products);
    if (bits == 0) {
      return context.node.Unimplemented("sums of ", products, " products, at most ",
                                        (1 << 23) / 255, " are supported");
    }
    return context.SetOutput(
        SumOfParts(context, {nullptr, src, context.value(src).dims}, weights, bits));
  }
  return context.SetOutput(EmitConvolution(context, src, weights, Operand()));
}

// Input `side` (0: the rows, 1: the columns) less its zero points, in s32. One for each row is a
// column.
absl::StatusOr<Operand> Difference(NodeContext& context, int side) {
  Operand src = context.input(side);
  const std::string suffix = side == 0 ? "/a" : "/b";
  ABSL_ASSIGN_OR_RETURN(src.value, context.InType(src, DataType::kS32));
  src.constant = nullptr;
  if (!context.Has(2 + side)) return src;
  Operand zero = context.input(2 + side);
  if (side == 0 && zero.dims.size() == 1 && src.dims.size() >= 2) {
    ABSL_ASSIGN_OR_RETURN(zero, ReshapeOf(context, zero, {zero.dims[0], 1}, suffix + "/rows"));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand difference,
                        ElementwiseOf(context, {Function::kSub}, {src, zero}, suffix));
  if (difference.dims == src.dims) return difference;
  return context.node.Invalid("input ", 2 + side, " of dims ", DimsToString(zero.dims),
                              " does not fit input ", side);
}

// The one zero point of an operand of MatMulInteger that is a matrix of computed bytes, if it is
// known.
absl::StatusOr<std::optional<QuantizationParams>> ZeroPointOf(const NodeContext& context,
                                                              int side) {
  const Operand& src = context.input(side);
  const DataType type = context.TypeOf(src);
  if (src.constant != nullptr || src.dims.size() < 2 || !IsByte(type)) return std::nullopt;
  ABSL_ASSIGN_OR_RETURN(
      const std::optional<AxisQuantization> quantization,
      ReadQuantization(context, {.zero_point = 2 + side}, src.dims, side == 0 ? -2 : -1));
  if (!quantization || quantization->params.size() != 1) return std::nullopt;
  const QuantizationParams params = quantization->params[0];
  return network::HoldsZeroPoint(type, params) ? std::optional(params) : std::nullopt;
}

// Sums that f32 does not hold.
absl::Status BuildLongSums(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const auto a_zero, ZeroPointOf(context, 0));
  ABSL_ASSIGN_OR_RETURN(const auto b_zero, ZeroPointOf(context, 1));
  if (a_zero && b_zero && context.input(0).dims.back() <= network::kMostProductsOfBytes)
    return context.SetOutput(IntegerSumsOf(context, context.input(0), context.input(1),
                                           network::IntegerMatmul{*a_zero, *b_zero, std::nullopt}));
  ABSL_ASSIGN_OR_RETURN(const Operand a, Difference(context, 0));
  ABSL_ASSIGN_OR_RETURN(const Operand b, Difference(context, 1));
  return context.SetOutput(MatMulOf(context, a, b));
}

// The sums themselves, whatever their size; where a Cast alone reads them f32 may add, and round,
// long ones.
absl::Status BuildMatMulInteger(NodeContext& context) {
  const Dims& left = context.input(0).dims;
  if (!left.empty() && left.back() > kMostExactProducts && !context.IsReadOnlyBy("Cast"))
    return BuildLongSums(context);
  ABSL_ASSIGN_OR_RETURN(const ValueId src, Source(context, 0, {.zero_point = 2}, -2));
  return context.SetOutput(Product(context, src, 1, {.zero_point = 3}));
}

ElementType Sums(const TypedNode&, int) { return DataType::kS32; }

// The type of the result's zero point.
ElementType LikeResultsZeroPoint(const TypedNode& node, int) { return node.input(7); }

}  // namespace

TILEWIRE_OPERATORS(QLinear) = {
    Quantized({"ConvInteger", 10, 2, 4, "auto_pad dilations group kernel_shape pads strides",
               BuildConvInteger, Folds::kNever, Sums}),
    Quantized({"MatMulInteger", 10, 2, 4, "", BuildMatMulInteger, Folds::kNever, Sums}),
    Quantized({"QLinearConv", 10, 8, 9, "auto_pad dilations group kernel_shape pads strides",
               BuildQLinearConv, Folds::kNever, LikeResultsZeroPoint}),
    Quantized({"QLinearMatMul", 10, 8, 8, "", BuildQLinearMatMul, Folds::kNever,
               LikeResultsZeroPoint}),
};

}  // namespace tilewire::reader
