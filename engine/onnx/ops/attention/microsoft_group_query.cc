// SPDX-License-Identifier: Apache-2.0
//
// GroupQueryAttention: attention of language models whose keys and values of earlier tokens come as
// inputs, of fewer heads than queries have, with rotated positions. Earlier keys may lie in a
// buffer that is longer than there are any; keys beyond the total length are not read. How many
// keys there are is known where there is one sequence, or no earlier key; else it is computed for
// each sequence. Earlier keys may be quantized (quantized_cache.h). Source: ONNX Runtime's
// ContribOperators.md, version 1 of com.microsoft.
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/attention/attention_steps.h"
#include "engine/onnx/ops/attention/quantized_cache.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// The inputs by number.
struct Given {
  enum : int {
    kQuery,
    kKey,
    kValue,
    kPastKey,
    kPastValue,
    kLastKeys,
    kTotal,
    kCos,
    kSin,
    kPositions,
    kBias,
    kSink,
    kKeyScale,
    kValueScale,
    kQueryNorm,
    kKeyNorm
  };
};

struct Attended {
  Operand queries, keys, values;
  int64_t batch = 0, tokens = 0;  // new ones
  int64_t buffer = 0;             // length of earlier keys, with those that are not read
  int64_t total = 0;              // the most keys that a sequence has
  bool is_known = false;          // every sequence has total - tokens earlier keys
  Operand past;                   // else so many: [batch, 1], of f32
};

absl::Status CheckGroupQuery(const NodeContext& context) {
  const Node& node = context.node;
  if (node.HasInput(Given::kQueryNorm) || node.HasInput(Given::kKeyNorm))
    return node.Unimplemented("normalised queries and keys (q_norm_weight, k_norm_weight)");
  for (const absl::string_view name : {"qk_output", "sliding_window_cache"}) {
    ABSL_ASSIGN_OR_RETURN(const int64_t value, node.Int(name, 0));
    if (value != 0) return node.Unimplemented(name, " ", value);
  }
  ABSL_ASSIGN_OR_RETURN(const int64_t causal, node.Int("causal", 1));
  if (causal != 1) return node.Unimplemented("causal ", causal);
  if (node.HasOutput(3)) return node.Unimplemented("scores as an output (output_qk)");
  for (const int i : {Given::kLastKeys, Given::kTotal}) {
    if (!context.Has(i)) return node.Invalid("input ", i, " is missing");
  }
  if (context.Has(Given::kPastKey) != context.Has(Given::kPastValue) ||
      context.Has(Given::kKey) != context.Has(Given::kValue))
    return node.Invalid("keys without values");
  return absl::OkStatus();
}

// Queries, keys and values of the new tokens, which may lie in one input.
absl::Status ReadHeads(NodeContext& context, Attended* attended) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t heads, node.Int("num_heads", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t kv_heads, node.Int("kv_num_heads", 0));
  const Operand query = context.input(Given::kQuery);
  if (query.dims.size() != 3 || heads < 1 || kv_heads < 1 || heads > (1 << 20) ||
      kv_heads > (1 << 20) || heads % kv_heads != 0)
    return node.Invalid("num_heads ", heads, " and kv_num_heads ", kv_heads, " of ",
                        DimsToString(query.dims));
  Operand parts[3] = {query, {}, {}};
  if (context.Has(Given::kKey)) {
    parts[1] = context.input(Given::kKey);
    parts[2] = context.input(Given::kValue);
  } else {
    const int64_t all = heads + 2 * kv_heads, size = query.dims[2] / all;
    if (size == 0 || query.dims[2] % all != 0)
      return node.Invalid(all, " heads in ", DimsToString(query.dims));
    const int64_t sizes[] = {heads * size, kv_heads * size, kv_heads * size};
    for (int64_t i = 0, start = 0; i < 3; start += sizes[i++]) {
      ABSL_ASSIGN_OR_RETURN(parts[i], SelectAlong(context, query, 2, {{start, 1, sizes[i]}},
                                                  absl::StrCat("/part", i)));
    }
  }
  ABSL_ASSIGN_OR_RETURN(attended->queries, HeadsOf(context, parts[0], heads, "0"));
  ABSL_ASSIGN_OR_RETURN(attended->keys, HeadsOf(context, parts[1], kv_heads, "1"));
  ABSL_ASSIGN_OR_RETURN(attended->values, HeadsOf(context, parts[2], kv_heads, "2"));
  attended->batch = query.dims[0];
  attended->tokens = query.dims[1];
  if (attended->keys.dims[2] != attended->tokens || attended->values.dims[2] != attended->tokens)
    return node.Invalid("queries and keys of different lengths");
  return absl::OkStatus();
}

// How many keys there are, and how many of them were there before.
absl::Status ReadLengths(NodeContext& context, Attended* attended) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr total, context.Ints(Given::kTotal));
  attended->buffer = context.Has(Given::kPastKey) && context.input(Given::kPastKey).dims.size() == 4
                         ? context.input(Given::kPastKey).dims[2]
                         : 0;
  attended->total = total->count() == 1 ? total->ints[0] : 0;
  const int64_t most = attended->buffer + attended->tokens;
  if (attended->total < attended->tokens || attended->total > most)
    return node.Invalid("a total length of ", attended->total, " for ", attended->tokens,
                        " tokens after ", attended->buffer);
  attended->is_known = attended->batch == 1 || attended->total == attended->tokens;
  if (attended->is_known) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const ValueId last,
                        context.InType(context.input(Given::kLastKeys), DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(const Operand column,
                        ReshapeOf(context, {nullptr, last, context.input(Given::kLastKeys).dims},
                                  {attended->batch, 1}, "/last_keys"));
  ABSL_ASSIGN_OR_RETURN(
      attended->past,
      LinearOf(context, column, 1, 1.0f - static_cast<float>(attended->tokens), "/past"));
  return absl::OkStatus();
}

// Numbers start, start + 1, ... as f32.
Operand Count(const NodeContext& context, int64_t start, int64_t count, absl::string_view suffix) {
  std::vector<float> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(start + i);
  return context.KnownFloats(suffix, {count}, std::move(numbers));
}

// The rows of cosines or sines for the new tokens: [batch or 1, 1, tokens, half].
absl::StatusOr<Operand> AnglesOf(NodeContext& context, int input, const Attended& attended) {
  const Operand& table = context.input(input);
  const std::string suffix = absl::StrCat("/angles", input);
  if (table.dims.size() != 2 || 2 * table.dims[1] > attended.queries.dims[3])
    return context.node.Invalid("input ", input, " of dims ", DimsToString(table.dims));
  Operand rows;
  if (context.Has(Given::kPositions)) {
    ABSL_ASSIGN_OR_RETURN(rows,
                          GatherOf(context, table, context.input(Given::kPositions), 0, suffix));
  } else if (attended.is_known) {
    const int64_t first = attended.total - attended.tokens;
    if (attended.total > table.dims[0])
      return context.node.Invalid("input ", input, " of ", table.dims[0], " rows for ",
                                  attended.total, " positions");
    ABSL_ASSIGN_OR_RETURN(rows,
                          SelectAlong(context, table, 0, {{first, 1, attended.tokens}}, suffix));
  } else {
    ABSL_ASSIGN_OR_RETURN(
        const Operand positions,
        ElementwiseOf(context, {Function::kAdd},
                      {attended.past, Count(context, 0, attended.tokens, "/tokens")},
                      absl::StrCat("/positions", input)));
    ABSL_ASSIGN_OR_RETURN(rows, GatherOf(context, table, positions, 0, suffix));
  }
  const int64_t half = table.dims[1], each = attended.tokens * half;
  const int64_t count = ElementCount(rows.dims).value_or(0);
  const int64_t batch = each == 0 ? 0 : count / each;
  if (count == 0 || count % each != 0 || (batch != 1 && batch != attended.batch))
    return context.node.Invalid("angles of dims ", DimsToString(rows.dims), " for ", attended.batch,
                                " sequences of ", attended.tokens);
  return ReshapeOf(context, rows, {batch, 1, attended.tokens, half}, suffix + "/raised");
}

absl::Status Rotate(NodeContext& context, Attended* attended) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t rotates, node.Int("do_rotary", 0));
  if (rotates == 0) return absl::OkStatus();
  if (!context.Has(Given::kCos) || !context.Has(Given::kSin))
    return node.Invalid("do_rotary without cosines and sines");
  ABSL_ASSIGN_OR_RETURN(const int64_t interleaved, node.Int("rotary_interleaved", 0));
  ABSL_ASSIGN_OR_RETURN(const Operand cos, AnglesOf(context, Given::kCos, *attended));
  ABSL_ASSIGN_OR_RETURN(const Operand sin, AnglesOf(context, Given::kSin, *attended));
  const int64_t size = 2 * cos.dims[3];
  ABSL_ASSIGN_OR_RETURN(attended->queries, RotatedBy(context, attended->queries, cos, sin, size,
                                                     interleaved != 0, "/query"));
  ABSL_ASSIGN_OR_RETURN(
      attended->keys, RotatedBy(context, attended->keys, cos, sin, size, interleaved != 0, "/key"));
  return absl::OkStatus();
}

// Earlier keys or values with the new ones at their places, as long as the longer of buffer and
// total length, where every sequence has as many.
absl::StatusOr<Operand> JoinedAlike(NodeContext& context, const Attended& attended,
                                    const Operand& past, const Operand& added,
                                    const std::string& suffix) {
  const int64_t before = attended.total - attended.tokens;
  std::vector<Operand> parts;
  if (before > 0) {
    ABSL_ASSIGN_OR_RETURN(parts.emplace_back(),
                          SelectAlong(context, past, 2, {{0, 1, before}}, suffix + "/before"));
  }
  parts.push_back(added);
  if (const int64_t behind = attended.buffer - attended.total; behind > 0) {
    ABSL_ASSIGN_OR_RETURN(
        parts.emplace_back(),
        SelectAlong(context, past, 2, {{attended.total, 1, behind}}, suffix + "/behind"));
  }
  return parts.size() == 1 ? added : ConcatOf(context, parts, 2, suffix);
}

// The same where each sequence has its own number: rows of earlier ones, one of zeros after
// them, and new ones, by number.
absl::StatusOr<Operand> JoinedEach(NodeContext& context, const Attended& attended,
                                   const Operand& past, const Operand& added,
                                   const std::string& suffix) {
  const Operand nothing = context.KnownFloats(
      absl::StrCat(suffix, "/nothing"), {added.dims[0], added.dims[1], 1, added.dims[3]},
      std::vector<float>(added.dims[0] * added.dims[1] * added.dims[3], 0));
  ABSL_ASSIGN_OR_RETURN(const Operand all,
                        ConcatOf(context, {past, nothing, added}, 2, suffix + "/all"));
  const int64_t length = std::max(attended.buffer, attended.total);
  const int64_t rows = all.dims[2], groups = all.dims[0] * all.dims[1];
  const auto of = [&](Elementwise::Function function, std::vector<Operand> operands,
                      absl::string_view name) {
    return ElementwiseOf(context, {function}, operands, absl::StrCat(suffix, name));
  };
  const Operand places = Count(context, 0, length, suffix + "/places");
  const auto number = [&](absl::string_view name, int64_t value) {
    return context.KnownFloat(absl::StrCat(suffix, name), static_cast<float>(value));
  };
  // A place that is `token` places after the earlier ones has that token, if there is one.
  ABSL_ASSIGN_OR_RETURN(const Operand token, of(Function::kSub, {places, attended.past}, "/token"));
  ABSL_ASSIGN_OR_RETURN(const Operand not_before,
                        of(Function::kLessOrEqual, {number("/zero", 0), token}, "/not_before"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand not_behind,
      of(Function::kLess, {token, number("/tokens", attended.tokens)}, "/not_behind"));
  ABSL_ASSIGN_OR_RETURN(const Operand is_new,
                        of(Function::kAnd, {not_before, not_behind}, "/is_new"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand at,
      of(Function::kAdd, {token, number("/first_new", attended.buffer + 1)}, "/at"));
  ABSL_ASSIGN_OR_RETURN(const Operand old,
                        of(Function::kMin, {places, number("/behind", attended.buffer)}, "/old"));
  ABSL_ASSIGN_OR_RETURN(Operand from, of(Function::kWhere, {is_new, at, old}, "/from"));
  std::vector<float> first(groups);
  for (int64_t g = 0; g < groups; ++g) first[g] = static_cast<float>(g * rows);
  const Operand firsts = context.KnownFloats(absl::StrCat(suffix, "/first"),
                                             {all.dims[0], all.dims[1], 1}, std::move(first));
  ABSL_ASSIGN_OR_RETURN(from, ReshapeOf(context, from, {all.dims[0], 1, length}, suffix + "/one"));
  ABSL_ASSIGN_OR_RETURN(from, of(Function::kAdd, {firsts, from}, "/row"));
  ABSL_ASSIGN_OR_RETURN(const Operand table,
                        ReshapeOf(context, all, {groups * rows, all.dims[3]}, suffix + "/table"));
  ABSL_ASSIGN_OR_RETURN(const ValueId elements, context.AsValue(table));
  return GatherOf(context, {nullptr, elements, table.dims}, from, 0, suffix);
}

// Where keys or values come in and go out, and what says how they are quantized there.
struct Cache {
  int past, scale, output;
  absl::string_view type;
};

// The past, then `added`, as numbers or integers.
absl::StatusOr<Operand> Joined(NodeContext& context, const Attended& attended,
                               const CacheQuantization& quantization, int input,
                               const Operand& added, const std::string& suffix) {
  if (attended.buffer == 0) return added;
  const Operand& held = context.input(input);
  const Dims wanted =
      CachedDims(quantization, {added.dims[0], added.dims[1], attended.buffer, added.dims[3]});
  if (held.dims != wanted)
    return context.node.Invalid("input ", input, " of dims ", DimsToString(held.dims),
                                ", expected ", DimsToString(wanted));
  ABSL_ASSIGN_OR_RETURN(const Operand past,
                        CachedIntegers(context, quantization, held, suffix + "/past"));
  return attended.is_known ? JoinedAlike(context, attended, past, added, suffix)
                           : JoinedEach(context, attended, past, added, suffix);
}

// Adds what was there before, which comes out too. Keys beyond the total length are cut from what
// is attended to.
absl::StatusOr<Operand> WithPast(NodeContext& context, const Attended& attended, const Cache& cache,
                                 const Operand& added) {
  const std::string suffix = absl::StrCat("/present", cache.output);
  ABSL_ASSIGN_OR_RETURN(
      const CacheQuantization quantization,
      ReadCacheQuantization(context, cache.type, cache.past, cache.scale, added.dims));
  ABSL_ASSIGN_OR_RETURN(const Operand integers,
                        NearestIntegers(context, quantization, added, suffix + "/added"));
  ABSL_ASSIGN_OR_RETURN(const Operand all,
                        Joined(context, attended, quantization, cache.past, integers, suffix));
  if (context.node.HasOutput(cache.output)) {
    ABSL_ASSIGN_OR_RETURN(const Operand held, HeldOf(context, quantization, all, suffix));
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.OfAnyType(held));
    ABSL_RETURN_IF_ERROR(context.SetOutput(Operand{nullptr, value, held.dims}, cache.output));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand read,
                        SelectAlong(context, all, 2, {{0, 1, attended.total}}, suffix + "/read"));
  return NumbersOf(context, quantization, read, suffix + "/numbers");
}

// -infinity for keys that a query does not see.
absl::StatusOr<Operand> Masked(NodeContext& context, const Attended& attended,
                               const Operand& scores) {
  ABSL_ASSIGN_OR_RETURN(int64_t window, context.node.Int("local_window_size", -1));
  window = std::max<int64_t>(window, 0);
  const int64_t rows = attended.tokens, columns = attended.total;
  if (attended.is_known) {
    if (rows == 1 && (window == 0 || window >= columns)) return scores;
    ABSL_ASSIGN_OR_RETURN(const Operand mask,
                          CausalMask(context, rows, columns, columns - rows, window));
    return ElementwiseOf(context, {Function::kAdd}, {scores, mask}, "/masked");
  }
  const Operand places = Count(context, 0, columns, "/keys");
  ABSL_ASSIGN_OR_RETURN(const Operand own,
                        ElementwiseOf(context, {Function::kAdd},
                                      {attended.past, Count(context, 0, rows, "/rows")}, "/own"));
  ABSL_ASSIGN_OR_RETURN(const Operand column,
                        ReshapeOf(context, own, {attended.batch, 1, rows, 1}, "/own_column"));
  ABSL_ASSIGN_OR_RETURN(Operand sees, ElementwiseOf(context, {Function::kLessOrEqual},
                                                    {places, column}, "/not_after"));
  if (window > 0) {
    ABSL_ASSIGN_OR_RETURN(const Operand start,
                          LinearOf(context, column, 1, -static_cast<float>(window), "/start"));
    ABSL_ASSIGN_OR_RETURN(const Operand after,
                          ElementwiseOf(context, {Function::kLess}, {start, places}, "/in_window"));
    ABSL_ASSIGN_OR_RETURN(sees, ElementwiseOf(context, {Function::kAnd}, {sees, after}, "/sees"));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand mask,
                        MaskOf(context, sees, -std::numeric_limits<float>::infinity(), "/mask"));
  return ElementwiseOf(context, {Function::kAdd}, {scores, mask}, "/masked");
}

// softmax(scores), of one more score for each head if there are such.
absl::StatusOr<Operand> SharesBesideSink(NodeContext& context, const Operand& scores) {
  ABSL_ASSIGN_OR_RETURN(const int64_t smooth, context.node.Int("smooth_softmax", 0));
  Operand all = scores;
  const bool has_sink = context.Has(Given::kSink) || smooth > 0;
  if (has_sink) {
    Dims column = scores.dims;
    column[3] = 1;
    Operand sink = context.KnownFloats("/sink", {1, scores.dims[1], 1, 1},
                                       std::vector<float>(scores.dims[1], 0));
    if (context.Has(Given::kSink)) {
      ABSL_ASSIGN_OR_RETURN(sink, ReshapeOf(context, context.input(Given::kSink),
                                            {1, scores.dims[1], 1, 1}, "/sink"));
    }
    Select select = WholeOf(4);
    select.from[0].assign(column[0], {0, 1, 1});
    select.from[2].assign(column[2], {0, 1, 1});
    ABSL_ASSIGN_OR_RETURN(const Operand sinks,
                          SelectOf(context, sink, std::move(select), "/sinks"));
    ABSL_ASSIGN_OR_RETURN(all, ConcatOf(context, {scores, sinks}, 3, "/with_sink"));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand result, SharesOf(context, all));
  if (!has_sink) return result;
  return SelectAlong(context, result, 3, {{0, 1, scores.dims[3]}}, "/without_sink");
}

absl::Status BuildGroupQueryAttention(NodeContext& context) {
  const Node& node = context.node;
  ABSL_RETURN_IF_ERROR(CheckGroupQuery(context));
  Attended attended;
  ABSL_RETURN_IF_ERROR(ReadHeads(context, &attended));
  ABSL_RETURN_IF_ERROR(ReadLengths(context, &attended));
  ABSL_RETURN_IF_ERROR(Rotate(context, &attended));
  const Cache of_keys = {Given::kPastKey, Given::kKeyScale, 1, "k_quant_type"};
  const Cache of_values = {Given::kPastValue, Given::kValueScale, 2, "v_quant_type"};
  ABSL_ASSIGN_OR_RETURN(const Operand keys, WithPast(context, attended, of_keys, attended.keys));
  ABSL_ASSIGN_OR_RETURN(const Operand values,
                        WithPast(context, attended, of_values, attended.values));
  const int64_t heads = attended.queries.dims[1];
  ABSL_ASSIGN_OR_RETURN(const Operand all_keys, RepeatedHeads(context, keys, heads, "/all_keys"));
  ABSL_ASSIGN_OR_RETURN(const Operand all_values,
                        RepeatedHeads(context, values, heads, "/all_values"));
  ABSL_ASSIGN_OR_RETURN(float scale, node.Float("scale", 0));
  if (scale == 0) scale = 1 / std::sqrt(static_cast<float>(attended.queries.dims[3]));
  ABSL_ASSIGN_OR_RETURN(const float softcap, node.Float("softcap", 0));
  ABSL_ASSIGN_OR_RETURN(Operand scores,
                        ScoresOf(context, attended.queries, all_keys, scale, softcap));
  if (context.Has(Given::kBias)) {
    ABSL_ASSIGN_OR_RETURN(scores, WithBias(context, scores, context.input(Given::kBias)));
  }
  ABSL_ASSIGN_OR_RETURN(scores, Masked(context, attended, scores));
  ABSL_ASSIGN_OR_RETURN(const Operand shares, SharesBesideSink(context, scores));
  return FinishAttention(context, shares, all_values, /*together=*/true);
}

// Keys and values come out as they came in.
ElementType LikeQueryOrCache(const TypedNode& node, int i) {
  const int past = i == 1 ? Given::kPastKey : Given::kPastValue;
  const bool is_cache = (i == 1 || i == 2) && node.node.HasInput(past);
  return node.input(is_cache ? past : Given::kQuery);
}

}  // namespace

TILEWIRE_OPERATORS(MicrosoftGroupQuery) = {
    {"com.microsoft.GroupQueryAttention", 1, 1, 16,
     "causal do_rotary k_quant_type kv_cache_bit_width kv_num_heads local_window_size num_heads "
     "qk_norm_epsilon qk_output rotary_interleaved scale sliding_window_cache smooth_softmax "
     "softcap v_quant_type",
     BuildGroupQueryAttention, Folds::kNever, LikeQueryOrCache, Inputs({Given::kTotal})},
};

}  // namespace tilewire::reader
