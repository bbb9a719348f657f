// SPDX-License-Identifier: Apache-2.0
//
// GatherElements and GatherND: gathers by indices along several dimensions. The place of an element
// in the source, whose gathered dimensions are made one, is a sum of index * stride; constants fold
// to a selection. An index that is outside its dimension gives a place that is outside the source,
// which is refused like any other.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

Operand Integer(const NodeContext& context, absl::string_view name, int64_t value) {
  return OperandOf(MakeInts(absl::StrCat(context.output_name(), name), {}, {value}));
}

// Appends the operations of one sum of indices.
class PlaceSum {
 public:
  PlaceSum(NodeContext& context, int64_t elements) : context_(context), elements_(elements) {}

  // Adds `index` * stride, where the index is among `size` and negative ones count from the end.
  absl::Status Add(const Operand& index, int64_t size, int64_t stride) {
    ++terms_;
    ABSL_ASSIGN_OR_RETURN(const Operand zero_less, Of(Function::kLess, {index, Number("zero", 0)}));
    ABSL_ASSIGN_OR_RETURN(const Operand raised, Of(Function::kAdd, {index, Number("size", size)}));
    ABSL_ASSIGN_OR_RETURN(const Operand at, Of(Function::kWhere, {zero_less, raised, index}));
    ABSL_ASSIGN_OR_RETURN(const Operand early, Of(Function::kLess, {at, Number("zero", 0)}));
    ABSL_ASSIGN_OR_RETURN(const Operand late,
                          Of(Function::kLessOrEqual, {Number("size", size), at}));
    ABSL_ASSIGN_OR_RETURN(const Operand outside, Of(Function::kOr, {early, late}));
    ABSL_ASSIGN_OR_RETURN(const Operand term, Of(Function::kMul, {at, Number("stride", stride)}));
    ABSL_ASSIGN_OR_RETURN(const Operand place, sum_.defined() ? Of(Function::kAdd, {sum_, term})
                                                              : absl::StatusOr<Operand>(term));
    sum_ = place;
    if (!outside_.defined()) {
      outside_ = outside;
      return absl::OkStatus();
    }
    ABSL_ASSIGN_OR_RETURN(outside_, Of(Function::kOr, {outside_, outside}));
    return absl::OkStatus();
  }

  // Adds known numbers that are broadcast to the indices.
  absl::Status AddKnown(const Operand& numbers) {
    ABSL_ASSIGN_OR_RETURN(sum_, Of(Function::kAdd, {sum_, numbers}));
    return absl::OkStatus();
  }

  // The places; the number of elements where an index is outside.
  absl::StatusOr<Operand> Places() {
    return Of(Function::kWhere, {outside_, Number("elements", elements_), sum_});
  }

 private:
  Operand Number(absl::string_view name, int64_t value) const {
    return Integer(context_, absl::StrCat("/", name, terms_), value);
  }
  absl::StatusOr<Operand> Of(Function function, const std::vector<Operand>& operands) {
    return ElementwiseOf(context_, {function}, operands, absl::StrCat("/place", ++steps_));
  }

  NodeContext& context_;
  const int64_t elements_;
  Operand sum_, outside_;
  int terms_ = 0, steps_ = 0;
};

// Sums are exact in s64, whatever the type of the indices.
absl::StatusOr<Operand> WideIndices(NodeContext& context, const Operand& indices) {
  if (indices.constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr known, InMemory(indices.constant));
    if (known->is_float) return context.node.Invalid("indices that are not integers");
    return Operand{known, kNoValue, indices.dims};
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId wide, context.InType(indices, DataType::kS64));
  return Operand{nullptr, wide, indices.dims, /*is_integer=*/true};
}

// Rows of `src`, seen as [rows, ...], in the order of `places`.
absl::StatusOr<Operand> TakeRows(NodeContext& context, const Operand& src, const Operand& places) {
  Dims dims = places.dims;
  dims.insert(dims.end(), src.dims.begin() + 1, src.dims.end());
  if (places.constant == nullptr) {
    ValueId elements = src.value;
    if (elements == kNoValue) {
      ABSL_ASSIGN_OR_RETURN(elements, context.Numbers(src));
    }
    return context.EmitOperand(network::Gather{0}, {elements, places.value}, std::move(dims),
                               "/taken");
  }
  for (int64_t place : places.constant->ints) {
    if (place >= src.dims[0]) return context.node.Invalid("an index outside the input");
  }
  ABSL_ASSIGN_OR_RETURN(const Operand taken,
                        SelectAlong(context, src, 0, RunsOf(places.constant->ints), "/taken"));
  return ReshapeOf(context, taken, std::move(dims), "/shaped");
}

// 0, stride, 2 * stride, ... along the first of `dims`.
Operand Offsets(const NodeContext& context, Dims dims, int64_t stride, int64_t d) {
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < dims[0]; ++i) offsets.push_back(i * stride);
  const std::string name = absl::StrCat(context.output_name(), "/offsets", d);
  return OperandOf(MakeInts(name, std::move(dims), std::move(offsets)));
}

absl::Status BuildGatherElements(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, 0, src.dims.size()));
  ABSL_ASSIGN_OR_RETURN(const Operand indices, WideIndices(context, context.input(1)));
  if (indices.dims.size() != src.dims.size()) return node.Invalid("indices of another rank");
  const int64_t elements = *ElementCount(src.dims);
  PlaceSum sum(context, elements);
  int64_t stride = 1;  // of `axis`
  for (size_t d = axis + 1; d < src.dims.size(); ++d) stride *= src.dims[d];
  ABSL_RETURN_IF_ERROR(sum.Add(indices, src.dims[axis], stride));
  stride = 1;
  for (int d = static_cast<int>(src.dims.size()) - 1; d >= 0; stride *= src.dims[d--]) {
    if (indices.dims[d] > src.dims[d] && d != axis)
      return node.Invalid("indices beyond the input's dims");
    if (d == axis || indices.dims[d] > kLargestFold) continue;
    Dims dims(src.dims.size() - d, 1);
    dims[0] = indices.dims[d];
    ABSL_RETURN_IF_ERROR(sum.AddKnown(Offsets(context, std::move(dims), stride, d)));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand places, sum.Places());
  ABSL_ASSIGN_OR_RETURN(const Operand flat, ReshapeOf(context, src, {elements}, "/flat"));
  return context.SetOutput(TakeRows(context, flat, places));
}

// The tuples' number `i`, one index per tuple.
absl::StatusOr<Operand> Component(NodeContext& context, const Operand& tuples, int64_t i) {
  const int last = static_cast<int>(tuples.dims.size()) - 1;
  const std::string suffix = absl::StrCat("/component", i);
  ABSL_ASSIGN_OR_RETURN(const Operand column,
                        SelectAlong(context, tuples, last, {{i, 1, 1}}, suffix));
  return ReshapeOf(context, column, Dims(tuples.dims.begin(), tuples.dims.end() - 1),
                   suffix + "/dropped");
}

// The first `batch` dimensions are those of both.
absl::Status CheckBatch(const Node& node, const Dims& src, const Dims& tuples, int64_t batch) {
  const int64_t most = static_cast<int64_t>(std::min(src.size(), tuples.size())) - 1;
  if (batch < 0 || batch > most || !std::equal(src.begin(), src.begin() + batch, tuples.begin()))
    return node.Invalid("batch_dims ", batch, " of ", DimsToString(src), " and ",
                        DimsToString(tuples));
  for (int64_t d = 0; d < batch; ++d) {
    if (src[d] > kLargestFold) return node.Unimplemented("batches of more than 2^24");
  }
  return absl::OkStatus();
}

absl::Status BuildGatherNd(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int64_t batch_dims, node.Int("batch_dims", 0));
  ABSL_ASSIGN_OR_RETURN(const Operand tuples, WideIndices(context, context.input(1)));
  ABSL_RETURN_IF_ERROR(CheckBatch(node, src.dims, tuples.dims, batch_dims));
  const int64_t depth = batch_dims + tuples.dims.back();  // dimensions that are gathered from
  if (tuples.dims.back() < 1 || depth > static_cast<int64_t>(src.dims.size()))
    return node.Invalid("tuples of ", tuples.dims.back(), " indices");
  int64_t rows = 1;
  for (int64_t d = 0; d < depth; ++d) rows *= src.dims[d];
  PlaceSum sum(context, rows);
  int64_t stride = 1;
  for (int64_t d = depth - 1; d >= 0; stride *= src.dims[d--]) {
    if (d < batch_dims) {
      Dims dims(tuples.dims.size() - 1 - d, 1);
      dims[0] = src.dims[d];
      ABSL_RETURN_IF_ERROR(sum.AddKnown(Offsets(context, std::move(dims), stride, d)));
      continue;
    }
    ABSL_ASSIGN_OR_RETURN(const Operand index, Component(context, tuples, d - batch_dims));
    ABSL_RETURN_IF_ERROR(sum.Add(index, src.dims[d], stride));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand places, sum.Places());
  Dims dims(src.dims.begin() + depth, src.dims.end());
  dims.insert(dims.begin(), rows);
  ABSL_ASSIGN_OR_RETURN(const Operand matrix, ReshapeOf(context, src, std::move(dims), "/rows"));
  return context.SetOutput(TakeRows(context, matrix, places));
}

}  // namespace

TILEWIRE_OPERATORS(GatherElements) = {
    {"GatherElements", 11, 2, 2, "axis", BuildGatherElements, Folds::kInMemory},
    {"GatherND", 11, 2, 2, "batch_dims", BuildGatherNd, Folds::kInMemory},
};

}  // namespace tilewire::reader
