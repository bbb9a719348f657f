// SPDX-License-Identifier: Apache-2.0
//
// Attention as ONNX Runtime's optimiser and model builder write it: with padding masks, and with
// the keys and values of earlier requests as inputs, which come out with the new ones after them.
// Source: ONNX Runtime's ContribOperators.md, version 1 of com.microsoft.
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/attention/attention_steps.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/products/inner_product.h"
#include "engine/onnx/ops/products/matmul.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// kUnimplemented: one of these inputs, by number and name, is there.
absl::Status CheckLeftOut(const Node& node,
                          std::initializer_list<std::pair<int, absl::string_view>> inputs) {
  for (const auto& [i, name] : inputs) {
    if (node.HasInput(i)) return node.Unimplemented(name, " (input ", i, ")");
  }
  return absl::OkStatus();
}

// Queries, keys and values, a head each, and how many keys are of earlier requests.
struct Heads {
  Operand queries, keys, values;
  int64_t past = 0;
};

// Numbers 0, 1, ... of `count` keys.
Operand Places(const NodeContext& context, int64_t count, absl::string_view suffix) {
  std::vector<int64_t> places(count);
  for (int64_t i = 0; i < count; ++i) places[i] = i;
  return OperandOf(
      MakeInts(absl::StrCat(context.output_name(), suffix), {count}, std::move(places)));
}

// Whether each of `keys` keys comes before the end of its sequence, and after its start if there
// are two numbers for each: [batch, 1, 1, keys].
absl::StatusOr<Operand> InRanges(NodeContext& context, const Operand& ends, int64_t batch,
                                 int64_t keys) {
  const Operand places = Places(context, keys, "/places");
  ABSL_ASSIGN_OR_RETURN(const Operand first,
                        SelectAlong(context, ends, 0, {{0, 1, batch}}, "/ends"));
  ABSL_ASSIGN_OR_RETURN(const Operand end, ReshapeOf(context, first, {batch, 1, 1, 1}, "/end"));
  ABSL_ASSIGN_OR_RETURN(Operand truth,
                        ElementwiseOf(context, {Function::kLess}, {places, end}, "/before"));
  if (ends.dims[0] != 2 * batch) return truth;
  ABSL_ASSIGN_OR_RETURN(const Operand second,
                        SelectAlong(context, ends, 0, {{batch, 1, batch}}, "/starts"));
  ABSL_ASSIGN_OR_RETURN(const Operand start,
                        ReshapeOf(context, second, {batch, 1, 1, 1}, "/start"));
  ABSL_ASSIGN_OR_RETURN(const Operand after, ElementwiseOf(context, {Function::kLessOrEqual},
                                                           {start, places}, "/after"));
  return ElementwiseOf(context, {Function::kAnd}, {truth, after}, "/between");
}

// Whether a mask is [batch, 1, positions, positions], of all positions that there may be.
bool IsOfPositions(const Dims& mask, const Dims& scores) {
  return mask.size() == 4 && mask[0] == scores[0] && mask[1] == 1 && mask[2] == mask[3] &&
         mask[2] >= scores[3] && scores[2] <= scores[3];
}

// The part of such a mask that is for these keys and for the queries, which are the last of them.
absl::StatusOr<Operand> OfPositions(NodeContext& context, const Operand& mask, const Dims& scores) {
  Select select = WholeOf(4);
  select.from[2] = {{scores[3] - scores[2], 1, scores[2]}};
  select.from[3] = {{0, 1, scores[3]}};
  return SelectOf(context, mask, std::move(select), "/positions");
}

// The inputs that mask scores: padding by `mask_filter_value`, and real numbers that are added.
struct MaskInputs {
  int padding, bias;
  bool of_attention;  // as Attention takes them, which has forms of its own
};

// Which keys take part, as input `masks.padding` says: [batch, keys], [batch, queries, keys] or
// [batch, 1, positions, positions] of numbers above 0, the ends of sequences [batch], the ends and
// then the starts [2 * batch], or the ends and what packed sequences need [3 * batch + 2].
absl::StatusOr<Operand> TakesPart(NodeContext& context, const MaskInputs& masks,
                                  const Dims& scores) {
  Operand given = context.input(masks.padding);
  const Dims dims = given.dims;
  const int64_t batch = scores[0], rows = scores[2], columns = scores[3];
  if (dims == Dims{batch} || dims == Dims{2 * batch} || dims == Dims{3 * batch + 2})
    return InRanges(context, given, batch, columns);
  Dims raised;
  if (dims == Dims{batch, columns}) raised = {batch, 1, 1, columns};
  if (dims == Dims{batch, rows, columns}) raised = {batch, 1, rows, columns};
  if (masks.of_attention && IsOfPositions(dims, scores)) {
    ABSL_ASSIGN_OR_RETURN(given, OfPositions(context, given, scores));
    raised = given.dims;
  }
  if (raised.empty())
    return context.node.Unimplemented(
        "a mask of dims ", DimsToString(dims), " for scores of ", DimsToString(scores),
        "; supported are [batch], [2 * batch], [3 * batch + 2], [batch, keys], "
        "[batch, queries, keys]",
        masks.of_attention ? " and [batch, 1, positions, positions]" : "");
  const Operand zero = OperandOf(MakeInts(context.output_name() + "/nothing", {}, {0}));
  ABSL_ASSIGN_OR_RETURN(const Operand shaped, ReshapeOf(context, given, raised, "/raised_mask"));
  return ElementwiseOf(context, {Function::kLess}, {zero, shaped}, "/takes_part");
}

absl::StatusOr<Operand> Added(NodeContext& context, const Operand& scores, const Operand& mask,
                              absl::string_view suffix) {
  return ElementwiseOf(context, {Function::kAdd}, {scores, mask}, suffix);
}

// Scores with the mask of input `masks.padding`, if there is one. One number for all keys, of each
// sequence or of all, changes no share.
absl::StatusOr<Operand> Padded(NodeContext& context, const Operand& scores, MaskInputs masks) {
  if (!context.Has(masks.padding)) return scores;
  ABSL_ASSIGN_OR_RETURN(const float filter, context.node.Float("mask_filter_value", -10000));
  const Dims& dims = context.input(masks.padding).dims;
  if (masks.of_attention && (dims == Dims{scores.dims[0], 1} || dims == Dims{1, 1})) return scores;
  ABSL_ASSIGN_OR_RETURN(const Operand truth, TakesPart(context, masks, scores.dims));
  ABSL_ASSIGN_OR_RETURN(const Operand mask, MaskOf(context, truth, filter, "/padding"));
  return Added(context, scores, mask, "/padded");
}

absl::Status FinishHeads(NodeContext& context, const Heads& heads, MaskInputs masks) {
  const Node& node = context.node;
  const int64_t size = heads.queries.dims[3];
  ABSL_ASSIGN_OR_RETURN(const float scale, node.Float("scale", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t unidirectional, node.Int("unidirectional", 0));
  const float usual = 1 / std::sqrt(static_cast<float>(size));
  ABSL_ASSIGN_OR_RETURN(Operand scores, ScoresOf(context, heads.queries, heads.keys,
                                                 scale == 0 ? usual : scale, /*softcap=*/0));
  const Dims dims = scores.dims;
  ABSL_ASSIGN_OR_RETURN(scores, Padded(context, scores, masks));
  if (unidirectional != 0) {
    if (context.Has(masks.padding) && context.input(masks.padding).dims.size() == 4)
      return node.Invalid("a mask of all positions with unidirectional");
    ABSL_ASSIGN_OR_RETURN(const Operand mask, CausalMask(context, dims[2], dims[3], heads.past));
    ABSL_ASSIGN_OR_RETURN(scores, Added(context, scores, mask, "/masked"));
  }
  if (context.Has(masks.bias)) {
    ABSL_ASSIGN_OR_RETURN(scores, WithBias(context, scores, context.input(masks.bias)));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand shares, SharesOf(context, scores));
  return FinishAttention(context, shares, heads.values, /*together=*/true);
}

// Number `i` of two tensors that lie one after the other: keys, then values.
absl::StatusOr<Operand> OfPast(NodeContext& context, int input, int64_t i) {
  const Operand& past = context.input(input);
  if (past.dims.size() != 5 || past.dims[0] != 2)
    return context.node.Invalid("input ", input, " of dims ", DimsToString(past.dims),
                                ", expected [2, batch, heads, length, size]");
  ABSL_ASSIGN_OR_RETURN(const Operand one,
                        SelectAlong(context, past, 0, {{i, 1, 1}}, absl::StrCat("/past_part", i)));
  return ReshapeOf(context, one, Dims(past.dims.begin() + 1, past.dims.end()),
                   absl::StrCat("/past", i));
}

// Keys and values of earlier requests come before the new ones; both come out.
absl::Status AddPackedPast(NodeContext& context, int input, Heads* heads) {
  if (!context.Has(input) && !context.node.HasOutput(1)) return absl::OkStatus();
  std::vector<Operand> present;
  for (Operand* one : {&heads->keys, &heads->values}) {
    const auto i = static_cast<int64_t>(present.size());
    if (context.Has(input)) {
      ABSL_ASSIGN_OR_RETURN(const Operand past, OfPast(context, input, i));
      heads->past = past.dims[2];
      ABSL_ASSIGN_OR_RETURN(*one, ConcatOf(context, {past, *one}, 2, absl::StrCat("/present", i)));
    }
    Dims dims = one->dims;
    dims.insert(dims.begin(), 1);
    ABSL_ASSIGN_OR_RETURN(present.emplace_back(),
                          ReshapeOf(context, *one, std::move(dims), absl::StrCat("/raised", i)));
  }
  if (!context.node.HasOutput(1)) return absl::OkStatus();
  if (present[0].dims != present[1].dims)
    return context.node.Invalid("keys and values of different sizes with the output present");
  ABSL_ASSIGN_OR_RETURN(const Operand both, ConcatOf(context, present, 0, "/present"));
  return context.SetOutput(both, 1);
}

// The sizes of queries, keys and values in the product of input and weights.
absl::StatusOr<std::vector<int64_t>> PackedSizes(const Node& node, int64_t all) {
  ABSL_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, node.Ints("qkv_hidden_sizes", {}));
  if (sizes.empty()) sizes = {all / 3, all / 3, all / 3};
  if (sizes.size() == 3 && sizes[0] > 0 && sizes[0] == sizes[1] && sizes[2] > 0 &&
      sizes[0] + sizes[1] + sizes[2] == all)
    return sizes;
  return node.Invalid("weights of ", all, " columns for queries, keys and values");
}

absl::StatusOr<Operand> Product(NodeContext& context) {
  const Operand& weights = context.input(1);
  if (weights.constant == nullptr || weights.dims.size() != 2)
    return MatMulOf(context, context.input(0), weights, "/product");
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, context.FloatsInPlace(1));
  ABSL_ASSIGN_OR_RETURN(const ValueId product, EmitMatMul(context, src, known, "/product"));
  return Operand{nullptr, product, context.value(product).dims};
}

// The weights give queries, keys and values in one product.
absl::Status BuildPackedAttention(NodeContext& context) {
  const Node& node = context.node;
  ABSL_RETURN_IF_ERROR(CheckLeftOut(node, {{6, "past_sequence_length"}}));
  ABSL_ASSIGN_OR_RETURN(const int64_t shared, node.Int("past_present_share_buffer", 0));
  if (shared != 0) return node.Unimplemented("past_present_share_buffer ", shared);
  ABSL_ASSIGN_OR_RETURN(const int64_t rotary, node.Int("do_rotary", 0));
  if (rotary != 0)
    return node.Unimplemented("do_rotary ", rotary,
                              "; supported are RotaryEmbedding before MultiHeadAttention, and "
                              "do_rotary of GroupQueryAttention");
  ABSL_ASSIGN_OR_RETURN(const int64_t count, node.Int("num_heads", 0));
  ABSL_ASSIGN_OR_RETURN(Operand all, Product(context));
  if (context.Has(2)) {
    ABSL_ASSIGN_OR_RETURN(all, Added(context, all, context.input(2), "/all"));
  }
  if (all.dims.size() != 3) return node.Invalid("an input that is not of rank 3");
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes, PackedSizes(node, all.dims[2]));
  Heads heads;
  int64_t start = 0;
  for (Operand* one : {&heads.queries, &heads.keys, &heads.values}) {
    const std::string number = absl::StrCat(one - &heads.queries);
    const int64_t size = sizes[one - &heads.queries];
    ABSL_ASSIGN_OR_RETURN(const Operand part, SelectAlong(context, all, 2, {{start, 1, size}},
                                                          absl::StrCat("/part", number)));
    ABSL_ASSIGN_OR_RETURN(*one, HeadsOf(context, part, count, number));
    start += size;
  }
  ABSL_RETURN_IF_ERROR(AddPackedPast(context, 4, &heads));
  return FinishHeads(context, heads, {.padding = 3, .bias = 5, .of_attention = true});
}

// Input `i`, with its part of the bias, as heads.
absl::StatusOr<Operand> BiasedHeads(NodeContext& context, int i, int64_t first, int64_t count) {
  Operand src = context.input(i);
  if (src.dims.size() == 3 && context.Has(3)) {
    ABSL_ASSIGN_OR_RETURN(const Operand bias,
                          SelectAlong(context, context.input(3), 0, {{first, 1, src.dims[2]}},
                                      absl::StrCat("/bias", i)));
    ABSL_ASSIGN_OR_RETURN(src, Added(context, src, bias, absl::StrCat("/biased", i)));
  }
  return HeadsOf(context, src, count, absl::StrCat(i));
}

// The bias is that of queries, keys and values, one after the other.
absl::Status BuildMultiHeadAttention(NodeContext& context) {
  const Node& node = context.node;
  ABSL_RETURN_IF_ERROR(CheckLeftOut(node, {{8, "past_sequence_length"}, {9, "cache_indirection"}}));
  if (!context.Has(1) || !context.Has(2))
    return node.Unimplemented("queries, keys and values in one input");
  if (node.HasOutput(3)) return node.Unimplemented("scores as an output (qk)");
  if (context.Has(6) != context.Has(7)) return node.Invalid("past keys without past values");
  ABSL_ASSIGN_OR_RETURN(const int64_t count, node.Int("num_heads", 0));
  if (context.input(0).dims.size() != 3) return node.Invalid("queries that are not of rank 3");
  const int64_t hidden = context.input(0).dims[2];
  Heads heads;
  ABSL_ASSIGN_OR_RETURN(heads.queries, BiasedHeads(context, 0, 0, count));
  ABSL_ASSIGN_OR_RETURN(heads.keys, BiasedHeads(context, 1, hidden, count));
  ABSL_ASSIGN_OR_RETURN(heads.values, BiasedHeads(context, 2, 2 * hidden, count));
  ABSL_ASSIGN_OR_RETURN(heads.keys, AfterPast(context, 6, 1, heads.keys));
  ABSL_ASSIGN_OR_RETURN(heads.values, AfterPast(context, 7, 2, heads.values));
  if (context.Has(6)) heads.past = context.input(6).dims[2];
  return FinishHeads(context, heads, {.padding = 4, .bias = 5, .of_attention = false});
}

constexpr OpRow TrainsBias(OpRow row) {
  row.trains = Inputs({3});
  return row;
}

}  // namespace

TILEWIRE_OPERATORS(MicrosoftAttention) = {
    TrainsWeights({"com.microsoft.Attention", 1, 2, 7,
                   "do_rotary mask_filter_value num_heads past_present_share_buffer "
                   "qkv_hidden_sizes rotary_embedding_dim scale unidirectional",
                   BuildPackedAttention}),
    TrainsBias({"com.microsoft.MultiHeadAttention", 1, 1, 10,
                "mask_filter_value num_heads scale unidirectional", BuildMultiHeadAttention}),
};

}  // namespace tilewire::reader
