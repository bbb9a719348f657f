// SPDX-License-Identifier: Apache-2.0
//
// ScatterElements and ScatterND by known indices: a selection from the tensor and its updates, one
// after the other. Of two updates of one place the last counts, unless they are reduced: then each
// round takes one update of every place that has as many. By indices that are computed: the same,
// of constants, between the stages of a model (engine/onnx/stages/cut.h).
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// nullopt: the update takes the element's place.
absl::StatusOr<std::optional<Function>> ReductionOf(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::string reduction,
                        node.OneOf("reduction", "none", {"none", "add", "mul", "max", "min"}));
  if (reduction == "none") return std::nullopt;
  return reduction == "add"   ? Function::kAdd
         : reduction == "mul" ? Function::kMul
         : reduction == "max" ? Function::kMax
                              : Function::kMin;
}

// Two tensors of equal dims but for the first, joined along it.
absl::StatusOr<Operand> Joined(NodeContext& context, const Operand& a, const Operand& b,
                               absl::string_view suffix = "") {
  Dims dims = a.dims;
  dims[0] += b.dims[0];
  const std::string name = absl::StrCat(suffix, "/joined");
  if (a.constant != nullptr && b.constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr first, InMemory(a.constant));
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr second, InMemory(b.constant));
    std::vector<float> floats(first->floats.begin(), first->floats.end());
    floats.insert(floats.end(), second->floats.begin(), second->floats.end());
    std::vector<int64_t> ints = first->ints;
    ints.insert(ints.end(), second->ints.begin(), second->ints.end());
    const std::string whole = context.output_name() + name;
    return OperandOf(first->is_float ? MakeFloats(whole, dims, std::move(floats))
                                     : MakeInts(whole, dims, std::move(ints)));
  }
  const DataType type = context.TypeOf(a.value != kNoValue ? a : b);
  std::vector<ValueId> srcs;
  for (const Operand& operand : {a, b}) {
    ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), type == DataType::kF32
                                                   ? context.Numbers(operand)
                                                   : context.InType(operand, type));
  }
  return context.EmitOperand(network::Concat{0}, std::move(srcs), std::move(dims), name);
}

// The updates by place, in their order: round i holds the i-th of each place, -1 where it has none.
//   kUnimplemented  too many updates of one place
absl::StatusOr<std::vector<std::vector<int64_t>>> RoundsOf(const Node& node,
                                                           const std::vector<int64_t>& places,
                                                           int64_t rows, bool is_folded) {
  constexpr int64_t kMost = 4096;                  // nodes, where they are computed in a request
  constexpr int64_t kMostRows = int64_t{1} << 26;  // rows that are gone through
  const int64_t in_all = kMostRows / std::max<int64_t>(rows, 1);
  const int64_t most = is_folded ? in_all : std::min(in_all, kMost);
  std::vector<int64_t> counts(rows, 0);
  for (const int64_t place : places) {
    if (++counts[place] > most)
      return node.Unimplemented("more than ", most, " updates of one place of ", rows);
  }
  std::vector<std::vector<int64_t>> rounds;
  std::vector<size_t> taken(rows, 0);
  for (size_t i = 0; i < places.size(); ++i) {
    const size_t round = taken[places[i]]++;
    if (round == rounds.size()) rounds.emplace_back(rows, -1);
    rounds[round][places[i]] = static_cast<int64_t>(i);
  }
  return rounds;
}

// function(src[p], all updates of place p).
absl::StatusOr<Operand> Reduced(NodeContext& context, Function function, Operand src,
                                const Operand& updates, const std::vector<int64_t>& places) {
  const int64_t rows = src.dims[0];
  const bool keeps_lesser = function == Function::kMax || function == Function::kMin;
  const bool is_folded = src.constant != nullptr && updates.constant != nullptr;
  ABSL_ASSIGN_OR_RETURN(const auto rounds, RoundsOf(context.node, places, rows, is_folded));
  for (size_t round = 0; round < rounds.size(); ++round) {
    const std::string suffix = absl::StrCat("/round", round);
    Operand from = updates;
    std::vector<int64_t> rows_from = rounds[round];
    if (keeps_lesser) {  // what has no update is compared with itself
      ABSL_ASSIGN_OR_RETURN(from, Joined(context, src, updates, suffix));
      for (int64_t p = 0; p < rows; ++p) rows_from[p] = rows_from[p] < 0 ? p : rows + rows_from[p];
    }
    Select select = WholeOf(from.dims.size());
    select.from[0] = RunsOf(rows_from);
    select.fill = function == Function::kMul ? 1 : 0;
    ABSL_ASSIGN_OR_RETURN(const Operand picked,
                          SelectOf(context, from, std::move(select), suffix + "/picked"));
    ABSL_ASSIGN_OR_RETURN(src, ElementwiseOf(context, {function}, {src, picked}, suffix));
  }
  return src;
}

// Row i of `updates` goes to row places[i] of `src`; the result has the dims `dims`.
absl::Status FinishScatter(NodeContext& context, const Operand& src, const Operand& updates,
                           const std::vector<int64_t>& places, const Dims& dims) {
  if (context.IsInteger(0) != context.IsInteger(2))
    return context.node.Invalid("inputs of different types");
  if (places.empty()) return context.SetOutput(context.input(0));
  ABSL_ASSIGN_OR_RETURN(const std::optional<Function> reduction, ReductionOf(context.node));
  if (reduction) {
    ABSL_ASSIGN_OR_RETURN(const Operand reduced,
                          Reduced(context, *reduction, src, updates, places));
    return context.SetOutput(ReshapeOf(context, reduced, dims, "/shaped"));
  }
  const int64_t rows = src.dims[0];
  std::vector<int64_t> from(rows);
  std::iota(from.begin(), from.end(), 0);
  for (size_t i = 0; i < places.size(); ++i) from[places[i]] = rows + static_cast<int64_t>(i);
  ABSL_ASSIGN_OR_RETURN(const Operand joined, Joined(context, src, updates));
  ABSL_ASSIGN_OR_RETURN(const Operand scattered,
                        SelectAlong(context, joined, 0, RunsOf(from), "/scattered"));
  return context.SetOutput(ReshapeOf(context, scattered, dims, "/shaped"));
}

absl::Status CheckFoldable(const Node& node, int64_t elements) {
  if (elements <= kLargestFold) return absl::OkStatus();
  return node.Unimplemented("of more than ", kLargestFold, " places");
}

absl::Status BuildScatterElements(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0), updates = context.input(2);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr indices, context.Ints(1));
  const size_t rank = src.dims.size();
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, 0, rank));
  bool fits = indices->dims == updates.dims && updates.dims.size() == rank;
  for (size_t d = 0; fits && d < rank; ++d)
    fits = static_cast<int>(d) == axis || updates.dims[d] <= src.dims[d];
  if (!fits) return node.Invalid("indices and updates that do not fit the input");
  const int64_t elements = *ElementCount(src.dims), count = indices->count();
  ABSL_RETURN_IF_ERROR(CheckFoldable(node, elements));
  std::vector<int64_t> places;
  for (int64_t n = 0; n < count; ++n) {
    ABSL_ASSIGN_OR_RETURN(const int64_t at, NormalizeIndex(node, indices->ints[n], src.dims[axis],
                                                           1, static_cast<size_t>(n)));
    int64_t place = 0, stride = 1, rest = n;
    for (size_t d = rank; d-- > 0; rest /= updates.dims[d]) {
      place += (static_cast<int>(d) == axis ? at : rest % updates.dims[d]) * stride;
      stride *= src.dims[d];
    }
    places.push_back(place);
  }
  ABSL_ASSIGN_OR_RETURN(const Operand flat, ReshapeOf(context, src, {elements}, "/flat"));
  ABSL_ASSIGN_OR_RETURN(const Operand flat_updates,
                        ReshapeOf(context, updates, {count}, "/updates"));
  return FinishScatter(context, flat, flat_updates, places, src.dims);
}

absl::Status BuildScatterNd(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0), updates = context.input(2);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr indices, context.Ints(1));
  const size_t depth = indices->dims.empty() ? 0 : indices->dims.back();
  if (depth < 1 || depth > src.dims.size()) return node.Invalid("tuples of ", depth, " indices");
  Dims row(src.dims.begin() + depth, src.dims.end());
  Dims expected(indices->dims.begin(), indices->dims.end() - 1);
  expected.insert(expected.end(), row.begin(), row.end());
  if (updates.dims != expected)
    return node.Invalid("updates ", DimsToString(updates.dims), ", expected ",
                        DimsToString(expected));
  int64_t rows = 1;
  for (size_t d = 0; d < depth; ++d) rows *= src.dims[d];
  ABSL_RETURN_IF_ERROR(CheckFoldable(node, rows));
  std::vector<int64_t> places;
  for (size_t i = 0; i < indices->ints.size(); i += depth) {
    int64_t place = 0;
    for (size_t d = 0; d < depth; ++d) {
      ABSL_ASSIGN_OR_RETURN(const int64_t at,
                            NormalizeIndex(node, indices->ints[i + d], src.dims[d], 1, i + d));
      place = place * src.dims[d] + at;
    }
    places.push_back(place);
  }
  row.insert(row.begin(), rows);
  ABSL_ASSIGN_OR_RETURN(const Operand matrix, ReshapeOf(context, src, row, "/rows"));
  row[0] = static_cast<int64_t>(places.size());
  ABSL_ASSIGN_OR_RETURN(const Operand update_rows,
                        ReshapeOf(context, updates, std::move(row), "/updates"));
  return FinishScatter(context, matrix, update_rows, places, src.dims);
}

constexpr OpRow OfScatter(absl::string_view name, int since, absl::string_view attributes,
                          absl::Status (*build)(NodeContext& context)) {
  OpRow row = Late({name, since, 3, 3, attributes, build, Folds::kInMemory},
                   [](const Dims& first) { return first; });
  row.check = [](const Node& node) { return ReductionOf(node).status(); };
  return row;
}

}  // namespace

TILEWIRE_OPERATORS(Scatter) = {
    OfScatter("Scatter", 9, "axis", BuildScatterElements),
    OfScatter("ScatterElements", 11, "axis reduction", BuildScatterElements),
    OfScatter("ScatterND", 11, "reduction", BuildScatterNd),
};

}  // namespace tilewire::reader
