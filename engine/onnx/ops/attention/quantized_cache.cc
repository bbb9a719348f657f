// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/attention/quantized_cache.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

absl::StatusOr<int> BitsOf(const NodeContext& context, int past) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t bits, node.Int("kv_cache_bit_width", 8));
  const DataType type = context.ElementType(past);
  if ((bits == 8 && type == DataType::kS8) || (bits == 4 && type == DataType::kU8))
    return static_cast<int>(bits);
  return node.Unimplemented("a cache of ", bits, " bits (kv_cache_bit_width) in ",
                            DataTypeName(type), "; supported are 8 in s8 and 4 in u8");
}

absl::Status CheckScales(const NodeContext& context, const Operand& scale) {
  if (scale.constant == nullptr) return absl::OkStatus();
  if (!scale.constant->is_float) return context.node.Invalid("scales that are not real numbers");
  ABSL_ASSIGN_OR_RETURN(const HeldFloats held, network::LoadNumbers(*scale.constant));
  for (const float one : held.values) {
    if (!(one > 0) || std::isinf(one)) return context.node.Invalid("a scale of ", one);
  }
  return absl::OkStatus();
}

// Elements first, first + 2, ... of the last dimension.
absl::StatusOr<Operand> EverySecond(NodeContext& context, const Operand& src, int64_t first,
                                    absl::string_view suffix) {
  return SelectAlong(context, src, 3, {{first, 2, src.dims[3] / 2}}, suffix);
}

// One of each in turn, along the last dimension.
absl::StatusOr<Operand> InTurn(NodeContext& context, std::vector<Operand> pair,
                               absl::string_view suffix) {
  Dims dims = pair[0].dims, column = dims;
  column.push_back(1);
  dims[3] *= 2;
  for (size_t i = 0; i < pair.size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(pair[i],
                          ReshapeOf(context, pair[i], column, absl::StrCat(suffix, "/column", i)));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand pairs,
                        ConcatOf(context, pair, 4, absl::StrCat(suffix, "/pairs")));
  return ReshapeOf(context, pairs, std::move(dims), suffix);
}

}  // namespace

absl::StatusOr<CacheQuantization> ReadCacheQuantization(NodeContext& context,
                                                        absl::string_view type, int past, int scale,
                                                        const Dims& heads) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const std::string name,
                        node.OneOf(type, "NONE", {"NONE", "PER_TENSOR", "PER_CHANNEL"}));
  if ((name == "NONE") == context.Has(scale))
    return node.Invalid(type, " '", name, "' ", name == "NONE" ? "with" : "without",
                        " scales (input ", scale, ")");
  CacheQuantization cache;
  if (name == "NONE") return cache;
  if (!context.Has(past)) return node.Invalid(type, " '", name, "' without input ", past);
  ABSL_ASSIGN_OR_RETURN(cache.bits, BitsOf(context, past));
  if (cache.bits == 4 && heads[3] % 2 != 0)
    return node.Invalid("heads of ", heads[3], " integers of 4 bits");
  const Operand& given = context.input(scale);
  const Dims dims = name == "PER_TENSOR" ? Dims() : Dims{1, heads[1], 1, heads[3]};
  if (ElementCount(given.dims) != ElementCount(dims))
    return node.Invalid("scales (input ", scale, ") of dims ", DimsToString(given.dims), " for ",
                        type, " '", name, "' of ", heads[1], " heads of ", heads[3]);
  ABSL_RETURN_IF_ERROR(CheckScales(context, given));
  ABSL_ASSIGN_OR_RETURN(cache.scale,
                        ReshapeOf(context, given, dims, absl::StrCat("/scale", scale)));
  return cache;
}

Dims CachedDims(const CacheQuantization& cache, Dims heads) {
  if (cache.bits == 4) heads[3] /= 2;
  return heads;
}

absl::StatusOr<Operand> CachedIntegers(NodeContext& context, const CacheQuantization& cache,
                                       const Operand& held, absl::string_view suffix) {
  if (cache.bits == 0) return held;
  ABSL_ASSIGN_OR_RETURN(const ValueId numbers, context.InType(held, DataType::kF32));
  const Operand bytes = {nullptr, numbers, held.dims};
  if (cache.bits == 8) return bytes;
  const auto named = [&](absl::string_view name) { return absl::StrCat(suffix, name); };
  ABSL_ASSIGN_OR_RETURN(const Operand shares,
                        LinearOf(context, bytes, 1.0f / 16, 0, named("/shares")));
  ABSL_ASSIGN_OR_RETURN(const Operand upper,
                        ElementwiseOf(context, {Function::kFloor}, {shares}, named("/upper")));
  ABSL_ASSIGN_OR_RETURN(const Operand above, LinearOf(context, upper, 16, 0, named("/above")));
  ABSL_ASSIGN_OR_RETURN(const Operand lower,
                        ElementwiseOf(context, {Function::kSub}, {bytes, above}, named("/lower")));
  ABSL_ASSIGN_OR_RETURN(const Operand both, InTurn(context, {lower, upper}, named("/both")));
  return LinearOf(context, both, 1, -8, named("/integers"));
}

absl::StatusOr<Operand> NearestIntegers(NodeContext& context, const CacheQuantization& cache,
                                        const Operand& numbers, absl::string_view suffix) {
  if (cache.bits == 0) return numbers;
  const auto named = [&](absl::string_view name) { return absl::StrCat(suffix, name); };
  ABSL_ASSIGN_OR_RETURN(
      const Operand quotients,
      ElementwiseOf(context, {Function::kDiv}, {numbers, cache.scale}, named("/quotients")));
  ABSL_ASSIGN_OR_RETURN(const Operand rounded,
                        ElementwiseOf(context, {Function::kRound}, {quotients}, named("/rounded")));
  const auto most = static_cast<float>((1 << (cache.bits - 1)) - 1);
  return ActivationOf(context, {EltwiseAlgorithm::kClip, -most - 1, most}, rounded,
                      named("/nearest"));
}

absl::StatusOr<Operand> HeldOf(NodeContext& context, const CacheQuantization& cache,
                               const Operand& integers, absl::string_view suffix) {
  if (cache.bits == 0) return integers;
  const auto named = [&](absl::string_view name) { return absl::StrCat(suffix, name); };
  Operand bytes = integers;
  if (cache.bits == 4) {
    ABSL_ASSIGN_OR_RETURN(const Operand lower, EverySecond(context, integers, 0, named("/first")));
    ABSL_ASSIGN_OR_RETURN(const Operand upper, EverySecond(context, integers, 1, named("/second")));
    ABSL_ASSIGN_OR_RETURN(const Operand raised,
                          LinearOf(context, upper, 16, 8 * 16 + 8, named("/high_bits")));
    ABSL_ASSIGN_OR_RETURN(
        bytes, ElementwiseOf(context, {Function::kAdd}, {lower, raised}, named("/bytes")));
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId numbers, context.AsValue(bytes));
  return context.EmitOperand(network::Convert{}, {numbers}, bytes.dims, named("/held"),
                             cache.bits == 8 ? DataType::kS8 : DataType::kU8);
}

absl::StatusOr<Operand> NumbersOf(NodeContext& context, const CacheQuantization& cache,
                                  const Operand& integers, absl::string_view suffix) {
  if (cache.bits == 0) return integers;
  return ElementwiseOf(context, {Function::kMul}, {integers, cache.scale}, suffix);
}

}  // namespace tilewire::reader
