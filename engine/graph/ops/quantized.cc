// SPDX-License-Identifier: Apache-2.0
//
// Convolutions and products of 8-bit integers: real numbers between a Dequantize and a Quantize,
// which passes fold into operations on integers.
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/convolution.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/inner_product.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/quantization.h"

namespace tilewire::graph {
namespace {

// Input `i` as real numbers at run time. `axis` has grids of its own where there is more than one.
absl::StatusOr<ValueId> Source(NodeContext& context, int i, GridInputs inputs, int64_t axis,
                               absl::string_view suffix = "/src") {
  const Operand src = context.input(i);
  ABSL_ASSIGN_OR_RETURN(const std::optional<Grids> grids,
                        ReadGrids(context, inputs, src.dims, axis));
  ABSL_ASSIGN_OR_RETURN(const Operand real,
                        DequantizeOf(context, src, grids, inputs, axis, suffix));
  return context.AsValue(real);
}

struct RealWeights {
  ConstantPtr constant;
  Grids grids;
};

absl::StatusOr<RealWeights> ReadWeights(NodeContext& context, int i, GridInputs inputs,
                                        int64_t axis) {
  const Operand weights = context.input(i);
  if (weights.constant == nullptr)
    return context.node.Unimplemented(absl::StrCat("input ", i, " is computed at run time"));
  if (weights.constant->is_float)
    return context.node.Invalid(absl::StrCat("input ", i, " is not of integers"));
  ABSL_ASSIGN_OR_RETURN(Grids grids, ReadKnownGrids(context, inputs, weights.dims, axis));
  ABSL_ASSIGN_OR_RETURN(
      ConstantPtr constant,
      DequantizeConstant(weights.constant, grids, absl::StrCat(context.output_name(), "/weights")));
  return RealWeights{std::move(constant), std::move(grids)};
}

// Integers that count products of a step of the source and one of the weights.
absl::StatusOr<std::vector<float>> ReadBias(const NodeContext& context, int i, float src_scale,
                                            const RealWeights& weights) {
  if (!context.Has(i)) return std::vector<float>();
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr integers, context.Ints(i));
  const int64_t outputs = weights.constant->dims.empty() ? 0 : weights.constant->dims[0];
  if (integers->dims != Dims{outputs})
    return context.node.Invalid(absl::StrCat("a bias of dims ", DimsToString(integers->dims)));
  const std::vector<Grid>& grids = weights.grids.grids;
  std::vector<float> bias;
  for (int64_t o = 0; o < outputs; ++o) {
    const float scale = src_scale * grids[grids.size() == 1 ? 0 : o].scale;
    bias.push_back(static_cast<float>(integers->ints[o]) * scale);
  }
  return bias;
}

// The product of real numbers; a right side that is one known matrix becomes weights.
absl::StatusOr<ValueId> Product(NodeContext& context, ValueId src, int right, GridInputs inputs,
                                absl::string_view suffix = "") {
  const Operand given = context.input(right);
  const Operand left = {nullptr, src, context.value(src).dims};
  if (given.constant != nullptr && given.dims.size() == 2 && left.dims.size() >= 2) {
    ABSL_ASSIGN_OR_RETURN(const RealWeights weights, ReadWeights(context, right, inputs, -1));
    return EmitMatMul(context, src, weights.constant, suffix);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId matrix, Source(context, right, inputs, -1, "/right"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand product,
      MatMulOf(context, left, {nullptr, matrix, context.value(matrix).dims}, suffix));
  return product.value;
}

absl::Status FinishQuantized(NodeContext& context, ValueId real, GridInputs inputs) {
  const Dims dims = context.value(real).dims;
  ABSL_ASSIGN_OR_RETURN(const DataType type, TypeOfZeroPoint(context, inputs.zero_point));
  ABSL_ASSIGN_OR_RETURN(const Grids grids, ReadKnownGrids(context, inputs, dims, -1));
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        QuantizeOf(context, {nullptr, real, dims}, grids, inputs, -1, type));
  return context.SetOutput(dst);
}

}  // namespace

absl::Status LowerQLinearConv(NodeContext& context) {
  const GridInputs of_src = {.scale = 1, .zero_point = 2};
  ABSL_ASSIGN_OR_RETURN(const ValueId src, Source(context, 0, of_src, 1));
  ABSL_ASSIGN_OR_RETURN(const RealWeights weights,
                        ReadWeights(context, 3, {.scale = 4, .zero_point = 5}, 0));
  ABSL_ASSIGN_OR_RETURN(const Grids src_grids,
                        ReadKnownGrids(context, of_src, context.input(0).dims, 1));
  if (src_grids.grids.size() != 1) return context.node.Invalid("input 1 is not one scale");
  ABSL_ASSIGN_OR_RETURN(std::vector<float> bias,
                        ReadBias(context, 8, src_grids.grids[0].scale, weights));
  ABSL_ASSIGN_OR_RETURN(const ValueId real,
                        EmitConvolution(context, src, weights.constant, std::move(bias), "/real"));
  return FinishQuantized(context, real, {.scale = 6, .zero_point = 7});
}

absl::Status LowerQLinearMatMul(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, Source(context, 0, {.scale = 1, .zero_point = 2}, -2));
  ABSL_ASSIGN_OR_RETURN(const ValueId real,
                        Product(context, src, 3, {.scale = 4, .zero_point = 5}, "/real"));
  return FinishQuantized(context, real, {.scale = 6, .zero_point = 7});
}

absl::Status LowerConvInteger(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, Source(context, 0, {.zero_point = 2}, 1));
  ABSL_ASSIGN_OR_RETURN(const RealWeights weights, ReadWeights(context, 1, {.zero_point = 3}, 0));
  ABSL_ASSIGN_OR_RETURN(const ValueId dst, EmitConvolution(context, src, weights.constant, {}));
  return context.SetOutput(dst);
}

absl::Status LowerMatMulInteger(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const ValueId src, Source(context, 0, {.zero_point = 2}, -2));
  ABSL_ASSIGN_OR_RETURN(const ValueId dst, Product(context, src, 1, {.zero_point = 3}));
  return context.SetOutput(dst);
}

}  // namespace tilewire::graph
