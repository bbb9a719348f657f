// SPDX-License-Identifier: Apache-2.0
//
// ONNX's Attention and RotaryEmbedding, of heads that stand in a dimension of their own, or one
// after the other in the last one. Source: ONNX's operator documents, opsets 23 and 24.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/attention/attention_steps.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// Input `i` as [batch, heads, sequence, head size].
absl::StatusOr<Operand> HeadsOf(NodeContext& context, int i, absl::string_view count) {
  ABSL_ASSIGN_OR_RETURN(const int64_t heads, context.node.Int(count, 0));
  return HeadsOf(context, context.input(i), heads, absl::StrCat(i));
}

// The past, then input `i`; the joined tensor is output `i` too, where that is used.
absl::StatusOr<Operand> WithPast(NodeContext& context, int i) {
  ABSL_ASSIGN_OR_RETURN(Operand all, HeadsOf(context, i, "kv_num_heads"));
  return AfterPast(context, i + 3, i, std::move(all));
}

absl::StatusOr<Operand> Masked(NodeContext& context, Operand scores) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t is_causal, node.Int("is_causal", 0));
  const int64_t rows = scores.dims[2], columns = scores.dims[3];
  if (is_causal != 0) {
    if (context.Has(4)) return node.Unimplemented("is_causal with past keys");
    ABSL_ASSIGN_OR_RETURN(const Operand causal, CausalMask(context, rows, columns));
    ABSL_ASSIGN_OR_RETURN(scores,
                          ElementwiseOf(context, {Function::kAdd}, {scores, causal}, "/masked"));
  }
  if (!context.Has(3)) return scores;
  Operand mask = context.input(3);
  if (IsInteger(mask)) {  // truth values: what takes part
    ABSL_ASSIGN_OR_RETURN(mask,
                          MaskOf(context, mask, -std::numeric_limits<float>::infinity(), "/mask"));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand masked,
                        ElementwiseOf(context, {Function::kAdd}, {scores, mask}, "/with_mask"));
  if (masked.dims != scores.dims)
    return node.Invalid("attn_mask of dims ", DimsToString(mask.dims), " for scores of ",
                        DimsToString(scores.dims));
  return masked;
}

absl::StatusOr<Operand> MaskedScores(NodeContext& context, const Operand& queries,
                                     const Operand& keys) {
  const Node& node = context.node;
  const float usual = 1 / std::sqrt(static_cast<float>(queries.dims[3]));
  ABSL_ASSIGN_OR_RETURN(const float scale, node.Float("scale", usual));
  ABSL_ASSIGN_OR_RETURN(const float softcap, node.Float("softcap", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t is_causal, node.Int("is_causal", 0));
  // Whether masks come before or after the cap is not said alike everywhere.
  if (softcap != 0 && (context.Has(3) || is_causal != 0))
    return node.Unimplemented("softcap with a mask");
  ABSL_ASSIGN_OR_RETURN(Operand scores, ScoresOf(context, queries, keys, scale, softcap));
  return Masked(context, std::move(scores));
}

// Precisions of softmax up to f32, and neither counts of keys nor scores as an output.
absl::Status CheckAttention(const NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t precision, node.Int("softmax_precision", 1));
  if (precision != onnx::TensorProto::FLOAT && precision != onnx::TensorProto::FLOAT16 &&
      precision != onnx::TensorProto::BFLOAT16)
    return node.Unimplemented("softmax_precision ", precision);
  if (context.Has(6)) return node.Unimplemented("nonpad_kv_seqlen");
  if (context.Has(4) != context.Has(5)) return node.Invalid("past keys without past values");
  if (node.HasOutput(3)) return node.Unimplemented("the output qk_matmul_output");
  return absl::OkStatus();
}

absl::Status BuildAttention(NodeContext& context) {
  ABSL_RETURN_IF_ERROR(CheckAttention(context));
  ABSL_ASSIGN_OR_RETURN(const Operand queries, HeadsOf(context, 0, "q_num_heads"));
  ABSL_ASSIGN_OR_RETURN(const Operand keys, WithPast(context, 1));
  ABSL_ASSIGN_OR_RETURN(const Operand values, WithPast(context, 2));
  const int64_t heads = queries.dims[1];
  ABSL_ASSIGN_OR_RETURN(const Operand all_keys, RepeatedHeads(context, keys, heads, "/all_keys"));
  ABSL_ASSIGN_OR_RETURN(const Operand all_values,
                        RepeatedHeads(context, values, heads, "/all_values"));
  ABSL_ASSIGN_OR_RETURN(const Operand scores, MaskedScores(context, queries, all_keys));
  ABSL_ASSIGN_OR_RETURN(const Operand shares, SharesOf(context, scores));
  return FinishAttention(context, shares, all_values,
                         /*together=*/context.input(0).dims.size() == 3);
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
    return context.node.Invalid("input ", i, " gives angles of dims ", DimsToString(angles.dims),
                                ", expected ", DimsToString(wanted));
  Dims raised = wanted;
  raised.insert(raised.begin() + heads, 1);
  return ReshapeOf(context, angles, std::move(raised), absl::StrCat("/raised", i));
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
  if (dims.size() != 4) return node.Invalid("num_heads ", count, " of ", DimsToString(given.dims));
  ABSL_ASSIGN_OR_RETURN(int64_t size, node.Int("rotary_embedding_dim", 0));
  if (size == 0) size = dims[3];
  if (size < 2 || size % 2 != 0 || size > dims[3])
    return node.Invalid("rotary_embedding_dim ", size, " of ", dims[3]);
  ABSL_ASSIGN_OR_RETURN(const Operand src, ReshapeOf(context, given, dims, "/heads"));
  const int heads = together ? 2 : 1;
  ABSL_ASSIGN_OR_RETURN(const Operand cos, Angles(context, 1, src.dims, heads, size / 2));
  ABSL_ASSIGN_OR_RETURN(const Operand sin, Angles(context, 2, src.dims, heads, size / 2));
  ABSL_ASSIGN_OR_RETURN(Operand dst, RotatedBy(context, src, cos, sin, size, interleaved != 0, ""));
  ABSL_ASSIGN_OR_RETURN(dst, ReshapeOf(context, dst, given.dims, "/together"));
  return context.SetOutput(dst);
}

}  // namespace

TILEWIRE_OPERATORS(Attention) = {
    {"Attention", 23, 3, 7,
     "is_causal kv_num_heads q_num_heads qk_matmul_output_mode scale softcap softmax_precision",
     BuildAttention},
    {"RotaryEmbedding", 23, 3, 4, "interleaved num_heads rotary_embedding_dim",
     BuildRotaryEmbedding},
};

}  // namespace tilewire::reader
