// SPDX-License-Identifier: Apache-2.0
//
// Attention and the embedding of positions before it, as operations that follow each other:
//
//   y = softmax(scale * q k^T + mask) v
//
// of heads that stand in a dimension of their own, or one after the other in the last one. Source:
// ONNX's operator documents, opsets 23 and 24.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/concat.h"
#include "engine/graph/ops/element_functions.h"
#include "engine/graph/ops/gather.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"
#include "engine/graph/ops/turned.h"

namespace tilewire::graph {
namespace {

using Function = Elementwise::Function;

// Input `i` as [batch, heads, sequence, head size].
absl::StatusOr<Operand> Heads(NodeContext& context, int i, absl::string_view count) {
  const Operand src = context.input(i);
  ABSL_ASSIGN_OR_RETURN(const int64_t heads, context.node.Int(count, 0));
  if (src.dims.size() == 4) return src;
  if (src.dims.size() != 3 || heads < 1 || src.dims[2] % heads != 0)
    return context.node.Invalid(
        absl::StrCat("input ", i, " of dims ", DimsToString(src.dims), " and ", count, " ", heads));
  const Dims apart = {src.dims[0], src.dims[1], heads, src.dims[2] / heads};
  ABSL_ASSIGN_OR_RETURN(const Operand split,
                        ReshapeOf(context, src, apart, absl::StrCat("/apart", i)));
  return TurnedOf(context, split, {0, 2, 1, 3}, absl::StrCat("/heads", i));
}

// Each head of keys or values as often as `heads` has it: of neighbours.
absl::StatusOr<Operand> Repeated(NodeContext& context, const Operand& src, int64_t heads,
                                 absl::string_view suffix) {
  if (src.dims[1] == 0 || heads % src.dims[1] != 0)
    return context.node.Invalid(absl::StrCat(heads, " heads of queries for ", src.dims[1]));
  Select select = WholeOf(4);
  std::vector<int64_t> from;
  for (int64_t h = 0; h < heads; ++h) from.push_back(h / (heads / src.dims[1]));
  select.from[1] = RunsOf(from);
  return SelectOf(context, src, std::move(select), suffix);
}

// What was there before, then input `i`; it is output `i` too, where that is used.
absl::StatusOr<Operand> WithPast(NodeContext& context, int i) {
  ABSL_ASSIGN_OR_RETURN(Operand all, Heads(context, i, "kv_num_heads"));
  const int past = i + 3;
  if (context.Has(past)) {
    if (context.input(past).dims.size() != 4)
      return context.node.Invalid(absl::StrCat("input ", past, " is not of rank 4"));
    ABSL_ASSIGN_OR_RETURN(
        all, ConcatOf(context, {context.input(past), all}, 2, absl::StrCat("/present", i)));
  }
  if (context.node.HasOutput(i)) {
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(all));
    ABSL_RETURN_IF_ERROR(context.SetOutput(Operand{nullptr, value, all.dims}, i));
  }
  return all;
}

// -infinity above the diagonal.
Operand CausalMask(const NodeContext& context, int64_t rows, int64_t columns) {
  std::vector<float> mask(rows * columns, 0);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = r + 1; c < columns; ++c)
      mask[r * columns + c] = -std::numeric_limits<float>::infinity();
  }
  return OperandOf(
      MakeFloats(absl::StrCat(context.output_name(), "/causal"), {rows, columns}, std::move(mask)));
}

absl::StatusOr<Operand> Masked(NodeContext& context, Operand scores) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t is_causal, node.Int("is_causal", 0));
  const int64_t rows = scores.dims[2], columns = scores.dims[3];
  if (is_causal != 0) {
    if (context.Has(4)) return node.Unimplemented("is_causal with past keys");
    if (rows * columns > kLargestFold)
      return node.Unimplemented(absl::StrCat("is_causal of more than ", kLargestFold, " scores"));
    ABSL_ASSIGN_OR_RETURN(scores,
                          ElementwiseOf(context, {Function::kAdd},
                                        {scores, CausalMask(context, rows, columns)}, "/masked"));
  }
  if (!context.Has(3)) return scores;
  Operand mask = context.input(3);
  if (IsInteger(mask)) {  // truth values: what takes part
    const auto number = [&](absl::string_view suffix, float value) {
      return OperandOf(MakeFloats(absl::StrCat(context.output_name(), suffix), {}, {value}));
    };
    ABSL_ASSIGN_OR_RETURN(mask,
                          ElementwiseOf(context, {Function::kWhere},
                                        {mask, number("/zero", 0),
                                         number("/never", -std::numeric_limits<float>::infinity())},
                                        "/mask"));
  }
  return ElementwiseOf(context, {Function::kAdd}, {scores, mask}, "/with_mask");
}

// scale * q k^T, capped to (-softcap, softcap) if that is not 0, and masked.
absl::StatusOr<Operand> Scores(NodeContext& context, const Operand& queries, const Operand& keys) {
  const Node& node = context.node;
  const float usual = 1 / std::sqrt(static_cast<float>(queries.dims[3]));
  ABSL_ASSIGN_OR_RETURN(const float scale, node.Float("scale", usual));
  ABSL_ASSIGN_OR_RETURN(const float softcap, node.Float("softcap", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t is_causal, node.Int("is_causal", 0));
  using jit::EltwiseAlgorithm;
  ABSL_ASSIGN_OR_RETURN(
      const Operand scaled,
      ActivationOf(context, {EltwiseAlgorithm::kLinear, scale, 0}, queries, "/scaled"));
  ABSL_ASSIGN_OR_RETURN(const Operand turned, TurnedOf(context, keys, {0, 1, 3, 2}, "/keys"));
  ABSL_ASSIGN_OR_RETURN(Operand scores, MatMulOf(context, scaled, turned, "/scores"));
  if (softcap == 0) return Masked(context, std::move(scores));
  // Whether masks come before or after it is not said alike everywhere.
  if (context.Has(3) || is_causal != 0) return node.Unimplemented("softcap with a mask");
  ABSL_ASSIGN_OR_RETURN(
      scores, ActivationOf(context, {EltwiseAlgorithm::kLinear, 1 / softcap, 0}, scores, "/part"));
  ABSL_ASSIGN_OR_RETURN(scores, ActivationOf(context, {EltwiseAlgorithm::kTanh}, scores, "/tanh"));
  return ActivationOf(context, {EltwiseAlgorithm::kLinear, softcap, 0}, scores, "/capped");
}

// Precisions of softmax up to f32, and neither counts of keys nor scores as an output.
absl::Status CheckAttention(const NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t precision, node.Int("softmax_precision", 1));
  if (precision != onnx::TensorProto::FLOAT && precision != onnx::TensorProto::FLOAT16 &&
      precision != onnx::TensorProto::BFLOAT16)
    return node.Unimplemented(absl::StrCat("softmax_precision ", precision));
  if (context.Has(6)) return node.Unimplemented("nonpad_kv_seqlen");
  if (context.Has(4) != context.Has(5)) return node.Invalid("past keys without past values");
  if (node.HasOutput(3)) return node.Unimplemented("the output qk_matmul_output");
  return absl::OkStatus();
}

absl::Status BuildAttention(NodeContext& context) {
  ABSL_RETURN_IF_ERROR(CheckAttention(context));
  ABSL_ASSIGN_OR_RETURN(const Operand queries, Heads(context, 0, "q_num_heads"));
  ABSL_ASSIGN_OR_RETURN(const Operand keys, WithPast(context, 1));
  ABSL_ASSIGN_OR_RETURN(const Operand values, WithPast(context, 2));
  const int64_t heads = queries.dims[1];
  ABSL_ASSIGN_OR_RETURN(const Operand all_keys, Repeated(context, keys, heads, "/all_keys"));
  ABSL_ASSIGN_OR_RETURN(const Operand all_values, Repeated(context, values, heads, "/all_values"));
  ABSL_ASSIGN_OR_RETURN(const Operand scores, Scores(context, queries, all_keys));
  ABSL_ASSIGN_OR_RETURN(const ValueId shares,
                        context.Emit(Softmax{3}, {scores.value}, scores.dims, "/shares"));
  const bool together = context.input(0).dims.size() == 3;
  ABSL_ASSIGN_OR_RETURN(const Operand product, MatMulOf(context, {nullptr, shares, scores.dims},
                                                        all_values, together ? "/product" : ""));
  if (!together) return context.SetOutput(product);
  ABSL_ASSIGN_OR_RETURN(const Operand turned, TurnedOf(context, product, {0, 2, 1, 3}, "/turned"));
  const Dims dims = {turned.dims[0], turned.dims[1], turned.dims[2] * turned.dims[3]};
  ABSL_ASSIGN_OR_RETURN(const Operand dst, ReshapeOf(context, turned, dims));
  return context.SetOutput(dst);
}

// Elements start, start + step, ... of the last dimension.
absl::StatusOr<Operand> LastPart(NodeContext& context, const Operand& src, int64_t start,
                                 int64_t step, int64_t count, absl::string_view suffix) {
  Select select = WholeOf(src.dims.size());
  select.from.back() = {{start, step, count}};
  return SelectOf(context, src, std::move(select), suffix);
}

// Input `i`, of cosines or sines, by positions where these are given, ready to broadcast to heads
// at dimension `heads` of four.
absl::StatusOr<Operand> Angles(NodeContext& context, int i, const Dims& src, int heads,
                               int64_t half) {
  Operand angles = context.input(i);
  if (context.Has(3) && angles.dims.size() == 2) {
    ABSL_ASSIGN_OR_RETURN(
        angles, GatherOf(context, angles, context.input(3), 0, absl::StrCat("/angles", i)));
  }
  const Dims wanted = {src[0], src[3 - heads], half};
  if (angles.dims != wanted)
    return context.node.Invalid(absl::StrCat("input ", i, " gives angles of dims ",
                                             DimsToString(angles.dims), ", expected ",
                                             DimsToString(wanted)));
  Dims raised = wanted;
  raised.insert(raised.begin() + heads, 1);
  return ReshapeOf(context, angles, std::move(raised), absl::StrCat("/raised", i));
}

// Pairs (a, b) of elements become (cos a - sin b, sin a + cos b): of each half, or of neighbours.
absl::StatusOr<Operand> Rotated(NodeContext& context, const Operand& src, int heads, int64_t size,
                                bool of_neighbours) {
  const int64_t half = size / 2, step = of_neighbours ? 2 : 1;
  ABSL_ASSIGN_OR_RETURN(const Operand cos, Angles(context, 1, src.dims, heads, half));
  ABSL_ASSIGN_OR_RETURN(const Operand sin, Angles(context, 2, src.dims, heads, half));
  ABSL_ASSIGN_OR_RETURN(const Operand a, LastPart(context, src, 0, step, half, "/a"));
  ABSL_ASSIGN_OR_RETURN(const Operand b,
                        LastPart(context, src, of_neighbours ? 1 : half, step, half, "/b"));
  const auto of = [&](Function function, const Operand& x, const Operand& y,
                      absl::string_view suffix) {
    return ElementwiseOf(context, {function}, {x, y}, suffix);
  };
  ABSL_ASSIGN_OR_RETURN(const Operand cos_a, of(Function::kMul, cos, a, "/cos_a"));
  ABSL_ASSIGN_OR_RETURN(const Operand sin_b, of(Function::kMul, sin, b, "/sin_b"));
  ABSL_ASSIGN_OR_RETURN(const Operand sin_a, of(Function::kMul, sin, a, "/sin_a"));
  ABSL_ASSIGN_OR_RETURN(const Operand cos_b, of(Function::kMul, cos, b, "/cos_b"));
  ABSL_ASSIGN_OR_RETURN(Operand first, of(Function::kSub, cos_a, sin_b, "/first"));
  ABSL_ASSIGN_OR_RETURN(Operand second, of(Function::kAdd, sin_a, cos_b, "/second"));
  if (!of_neighbours) return ConcatOf(context, {first, second}, 3, "/rotated");
  Dims column = first.dims, dims = first.dims;
  column.push_back(1);
  dims.back() = size;
  ABSL_ASSIGN_OR_RETURN(first, ReshapeOf(context, first, column, "/first_column"));
  ABSL_ASSIGN_OR_RETURN(second, ReshapeOf(context, second, column, "/second_column"));
  ABSL_ASSIGN_OR_RETURN(const Operand pairs, ConcatOf(context, {first, second}, 4, "/pairs"));
  return ReshapeOf(context, pairs, std::move(dims), "/rotated");
}

absl::Status BuildRotaryEmbedding(NodeContext& context) {
  const Node& node = context.node;
  const Operand given = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int64_t interleaved, node.Int("interleaved", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t count, node.Int("num_heads", 0));
  Dims dims = given.dims;
  const bool together = dims.size() == 3;
  if (together && count > 0 && dims[2] % count == 0)
    dims = {dims[0], dims[1], count, dims[2] / count};
  if (dims.size() != 4)
    return node.Invalid(absl::StrCat("num_heads ", count, " of ", DimsToString(given.dims)));
  ABSL_ASSIGN_OR_RETURN(int64_t size, node.Int("rotary_embedding_dim", 0));
  if (size == 0) size = dims[3];
  if (size < 2 || size % 2 != 0 || size > dims[3])
    return node.Invalid(absl::StrCat("rotary_embedding_dim ", size, " of ", dims[3]));
  ABSL_ASSIGN_OR_RETURN(const Operand src, ReshapeOf(context, given, dims, "/heads"));
  ABSL_ASSIGN_OR_RETURN(Operand dst,
                        Rotated(context, src, together ? 2 : 1, size, interleaved != 0));
  if (size < dims[3]) {
    ABSL_ASSIGN_OR_RETURN(const Operand rest,
                          LastPart(context, src, size, 1, dims[3] - size, "/rest"));
    ABSL_ASSIGN_OR_RETURN(dst, ConcatOf(context, {dst, rest}, 3, "/whole"));
  }
  ABSL_ASSIGN_OR_RETURN(dst, ReshapeOf(context, dst, given.dims, "/together"));
  return context.SetOutput(dst);
}

}  // namespace

TILEWIRE_OPERATORS(Attention) = {
    {"Attention", 23, 3, 7,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision",
     BuildAttention, Folds::kNever, LikeFirstInput},
    {"RotaryEmbedding", 23, 3, 4, "interleaved num_heads rotary_embedding_dim",
     BuildRotaryEmbedding, Folds::kNever, LikeFirstInput},
};

}  // namespace tilewire::graph
