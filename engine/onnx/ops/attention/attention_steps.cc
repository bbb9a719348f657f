// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/attention/attention_steps.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/products/matmul.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// Elements start, start + step, ... of the last dimension.
absl::StatusOr<Operand> LastPart(NodeContext& context, const Operand& src, int64_t start,
                                 int64_t step, int64_t count, absl::string_view suffix) {
  const int last = static_cast<int>(src.dims.size()) - 1;
  return SelectAlong(context, src, last, {{start, step, count}}, suffix);
}

}  // namespace

absl::StatusOr<Operand> HeadsOf(NodeContext& context, const Operand& src, int64_t heads,
                                absl::string_view suffix) {
  if (src.dims.size() == 4) return src;
  if (src.dims.size() != 3 || heads < 1 || src.dims[2] % heads != 0)
    return context.node.Invalid(heads, " heads in a tensor of dims ", DimsToString(src.dims));
  const Dims apart = {src.dims[0], src.dims[1], heads, src.dims[2] / heads};
  ABSL_ASSIGN_OR_RETURN(const Operand split,
                        ReshapeOf(context, src, apart, absl::StrCat("/apart", suffix)));
  return TurnedOf(context, split, {0, 2, 1, 3}, absl::StrCat("/heads", suffix));
}

absl::StatusOr<Operand> RepeatedHeads(NodeContext& context, const Operand& src, int64_t heads,
                                      absl::string_view suffix) {
  if (src.dims.size() != 4 || src.dims[1] == 0 || heads % src.dims[1] != 0)
    return context.node.Invalid(heads, " heads of queries for keys or values of ",
                                DimsToString(src.dims));
  std::vector<int64_t> from;
  for (int64_t h = 0; h < heads; ++h) from.push_back(h / (heads / src.dims[1]));
  return SelectAlong(context, src, 1, RunsOf(from), suffix);
}

absl::StatusOr<Operand> CausalMask(const NodeContext& context, int64_t rows, int64_t columns,
                                   int64_t past, int64_t window) {
  if (rows > kLargestFold || columns > kLargestFold || rows * columns > kLargestFold)
    return context.node.Unimplemented("a causal mask of more than ", kLargestFold, " scores");
  std::vector<float> mask(rows * columns, 0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      const bool sees = c <= past + r && (window == 0 || c > past + r - window);
      if (!sees) mask[r * columns + c] = -std::numeric_limits<float>::infinity();
    }
  }
  return context.KnownFloats("/causal", {rows, columns}, std::move(mask));
}

absl::StatusOr<Operand> MaskOf(NodeContext& context, const Operand& truth, float value,
                               absl::string_view suffix) {
  const auto number = [&](absl::string_view name, float number) {
    return context.KnownFloat(absl::StrCat(suffix, name), number);
  };
  return ElementwiseOf(context, {Function::kWhere},
                       {truth, number("/zero", 0), number("/never", value)}, suffix);
}

absl::StatusOr<Operand> ScoresOf(NodeContext& context, const Operand& queries, const Operand& keys,
                                 float scale, float softcap) {
  ABSL_ASSIGN_OR_RETURN(const Operand scaled, LinearOf(context, queries, scale, 0, "/scaled"));
  ABSL_ASSIGN_OR_RETURN(const Operand turned, TurnedOf(context, keys, {0, 1, 3, 2}, "/keys"));
  ABSL_ASSIGN_OR_RETURN(Operand scores, MatMulOf(context, scaled, turned, "/scores"));
  if (softcap == 0) return scores;
  ABSL_ASSIGN_OR_RETURN(scores, LinearOf(context, scores, 1 / softcap, 0, "/part"));
  ABSL_ASSIGN_OR_RETURN(scores, ActivationOf(context, {EltwiseAlgorithm::kTanh}, scores, "/tanh"));
  return LinearOf(context, scores, softcap, 0, "/capped");
}

absl::StatusOr<Operand> WithBias(NodeContext& context, const Operand& scores, const Operand& bias) {
  const Dims &dims = bias.dims, &wanted = scores.dims;
  const bool fits = dims.size() == 4 && (dims[0] == 1 || dims[0] == wanted[0]) &&
                    (dims[1] == 1 || dims[1] == wanted[1]) && dims[2] == wanted[2] &&
                    dims[3] == wanted[3];
  if (!fits)
    return context.node.Invalid("attention_bias of dims ", DimsToString(dims), " for scores of ",
                                DimsToString(wanted), "; the first two may be 1");
  return ElementwiseOf(context, {Function::kAdd}, {scores, bias}, "/with_bias");
}

absl::StatusOr<Operand> AfterPast(NodeContext& context, int past, int output, Operand all) {
  if (context.Has(past)) {
    const Operand& before = context.input(past);
    if (before.dims.size() != 4) return context.node.Invalid("input ", past, " is not of rank 4");
    ABSL_ASSIGN_OR_RETURN(all,
                          ConcatOf(context, {before, all}, 2, absl::StrCat("/present", output)));
  }
  if (context.node.HasOutput(output)) {
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(all));
    all = {nullptr, value, all.dims};
    ABSL_RETURN_IF_ERROR(context.SetOutput(all, output));
  }
  return all;
}

absl::StatusOr<Operand> SharesOf(NodeContext& context, const Operand& scores) {
  return context.EmitOperand(network::Softmax{3}, {scores.value}, scores.dims, "/shares");
}

absl::Status FinishAttention(NodeContext& context, const Operand& shares, const Operand& values,
                             bool together) {
  ABSL_ASSIGN_OR_RETURN(const Operand product,
                        MatMulOf(context, shares, values, together ? "/product" : ""));
  if (!together) return context.SetOutput(product);
  ABSL_ASSIGN_OR_RETURN(const Operand turned, TurnedOf(context, product, {0, 2, 1, 3}, "/turned"));
  const Dims dims = {turned.dims[0], turned.dims[1], turned.dims[2] * turned.dims[3]};
  return context.SetOutput(ReshapeOf(context, turned, dims));
}

absl::StatusOr<Operand> RotatedBy(NodeContext& context, const Operand& src, const Operand& cos,
                                  const Operand& sin, int64_t size, bool of_neighbours,
                                  absl::string_view suffix) {
  const int64_t half = size / 2, step = of_neighbours ? 2 : 1;
  const auto named = [&](absl::string_view name) { return absl::StrCat(suffix, name); };
  ABSL_ASSIGN_OR_RETURN(const Operand a, LastPart(context, src, 0, step, half, named("/a")));
  ABSL_ASSIGN_OR_RETURN(const Operand b,
                        LastPart(context, src, of_neighbours ? 1 : half, step, half, named("/b")));
  const auto of = [&](Function function, const Operand& x, const Operand& y,
                      absl::string_view name) {
    return ElementwiseOf(context, {function}, {x, y}, named(name));
  };
  ABSL_ASSIGN_OR_RETURN(const Operand cos_a, of(Function::kMul, cos, a, "/cos_a"));
  ABSL_ASSIGN_OR_RETURN(const Operand sin_b, of(Function::kMul, sin, b, "/sin_b"));
  ABSL_ASSIGN_OR_RETURN(const Operand sin_a, of(Function::kMul, sin, a, "/sin_a"));
  ABSL_ASSIGN_OR_RETURN(const Operand cos_b, of(Function::kMul, cos, b, "/cos_b"));
  ABSL_ASSIGN_OR_RETURN(Operand first, of(Function::kSub, cos_a, sin_b, "/first"));
  ABSL_ASSIGN_OR_RETURN(Operand second, of(Function::kAdd, sin_a, cos_b, "/second"));
  std::vector<Operand> parts = {first, second};
  if (of_neighbours) {
    Dims column = first.dims, dims = first.dims;
    column.push_back(1);
    dims.back() = size;
    ABSL_ASSIGN_OR_RETURN(first, ReshapeOf(context, first, column, named("/first_column")));
    ABSL_ASSIGN_OR_RETURN(second, ReshapeOf(context, second, column, named("/second_column")));
    ABSL_ASSIGN_OR_RETURN(const Operand pairs,
                          ConcatOf(context, {first, second}, 4, named("/pairs")));
    ABSL_ASSIGN_OR_RETURN(const Operand rotated,
                          ReshapeOf(context, pairs, std::move(dims), named("/rotated")));
    parts = {rotated};
  }
  if (size < src.dims[3]) {
    ABSL_ASSIGN_OR_RETURN(parts.emplace_back(),
                          LastPart(context, src, size, 1, src.dims[3] - size, named("/rest")));
  }
  return parts.size() == 1 ? parts[0] : ConcatOf(context, parts, 3, named("/whole"));
}

}  // namespace tilewire::reader
