// SPDX-License-Identifier: Apache-2.0
//
// ReverseSequence: the first elements along one dimension in reverse order, as many as a length for
// each index of another dimension says. By known lengths a selection of rows, by computed ones rows
// that are gathered.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// A matrix of rows: dimensions 0 and 1, of which one counts time.
struct Rows {
  int64_t dims[2] = {1, 1};
  bool time_first = true;
  int64_t times() const { return dims[time_first ? 0 : 1]; }
  int64_t batch() const { return dims[time_first ? 1 : 0]; }
  int64_t row(int64_t time, int64_t item) const {
    return time_first ? time * dims[1] + item : item * dims[1] + time;
  }
};

absl::StatusOr<Operand> ReversedBy(NodeContext& context, const Operand& table, const Rows& rows,
                                   const Constant& lengths) {
  std::vector<int64_t> from(rows.dims[0] * rows.dims[1]);
  for (int64_t item = 0; item < rows.batch(); ++item) {
    const int64_t length = lengths.ints[item];
    if (length < 0 || length > rows.times())
      return context.node.Invalid("a length of ", length, " in a dimension of ", rows.times(),
                                  ": allowed are 0 to ", rows.times());
    for (int64_t time = 0; time < rows.times(); ++time)
      from[rows.row(time, item)] = rows.row(time < length ? length - 1 - time : time, item);
  }
  return SelectAlong(context, table, 0, RunsOf(from), "/reversed");
}

// Each row's own place, or one far outside of the table where its length is negative, so that the
// rows that are gathered refuse it.
absl::StatusOr<Operand> OwnUnlessNegative(NodeContext& context, const Operand& own,
                                          const Operand& lengths) {
  const auto number = [&](absl::string_view suffix, float value) {
    return context.KnownFloat(suffix, value);
  };
  const auto count = static_cast<float>(own.dims[0] * own.dims[1]);
  ABSL_ASSIGN_OR_RETURN(
      const Operand below,
      ElementwiseOf(context, {Function::kMin}, {lengths, number("/zero", 0)}, "/below"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand sign,
      ElementwiseOf(context, {Function::kMax}, {below, number("/minus_one", -1)}, "/sign"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand out,
      ElementwiseOf(context, {Function::kMul}, {sign, number("/twice", 2 * count)}, "/out"));
  return ElementwiseOf(context, {Function::kAdd}, {own, out}, "/kept");
}

// The row of each row: its own, or the one as far from the end as it is from the start.
absl::StatusOr<Operand> RowsFrom(NodeContext& context, const Rows& rows, const Operand& lengths) {
  const auto table = [&](absl::string_view suffix, auto number) {
    std::vector<float> numbers(rows.dims[0] * rows.dims[1]);
    for (int64_t item = 0; item < rows.batch(); ++item) {
      for (int64_t time = 0; time < rows.times(); ++time)
        numbers[rows.row(time, item)] = static_cast<float>(number(time, item));
    }
    return context.KnownFloats(suffix, {rows.dims[0], rows.dims[1]}, std::move(numbers));
  };
  const int64_t step = rows.time_first ? rows.dims[1] : 1;
  const Operand times = table("/times", [](int64_t time, int64_t) { return time; });
  const Operand own =
      table("/own", [&](int64_t time, int64_t item) { return rows.row(time, item); });
  // The row that a length of 0 would give; each more of it is a step.
  const Operand first = table(
      "/first", [&](int64_t time, int64_t item) { return rows.row(0, item) - (time + 1) * step; });
  const Operand steps = context.KnownFloat("/step", static_cast<float>(step));
  ABSL_ASSIGN_OR_RETURN(const Operand is_within,
                        ElementwiseOf(context, {Function::kLess}, {times, lengths}, "/within"));
  ABSL_ASSIGN_OR_RETURN(const Operand far,
                        ElementwiseOf(context, {Function::kMul}, {lengths, steps}, "/far"));
  ABSL_ASSIGN_OR_RETURN(const Operand mirrored,
                        ElementwiseOf(context, {Function::kAdd}, {first, far}, "/mirrored"));
  ABSL_ASSIGN_OR_RETURN(const Operand kept, OwnUnlessNegative(context, own, lengths));
  return ElementwiseOf(context, {Function::kWhere}, {is_within, mirrored, kept}, "/rows");
}

absl::StatusOr<Operand> Reversed(NodeContext& context, const Operand& table, const Rows& rows) {
  const Operand& given = context.input(1);
  if (given.constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr lengths, context.Ints(1));
    return ReversedBy(context, table, rows, *lengths);
  }
  ABSL_RETURN_IF_ERROR(CheckCountable(context.node, rows.dims[0] * rows.dims[1]));
  ABSL_ASSIGN_OR_RETURN(const ValueId counts, context.InType(given, DataType::kF32));
  const Dims column = rows.time_first ? Dims{1, rows.batch()} : Dims{rows.batch(), 1};
  ABSL_ASSIGN_OR_RETURN(const Operand lengths,
                        ReshapeOf(context, {nullptr, counts, given.dims}, column, "/lengths"));
  ABSL_ASSIGN_OR_RETURN(const Operand from, RowsFrom(context, rows, lengths));
  ABSL_ASSIGN_OR_RETURN(const Operand flat,
                        ReshapeOf(context, from, {rows.dims[0] * rows.dims[1]}, "/flat_rows"));
  return GatherOf(context, table, flat, 0, "/reversed");
}

absl::Status BuildReverseSequence(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int64_t time_axis, node.Int("time_axis", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t batch_axis, node.Int("batch_axis", 1));
  const bool are_axes = time_axis + batch_axis == 1 && (time_axis == 0 || time_axis == 1);
  if (!are_axes || src.dims.size() < 2)
    return node.Invalid("time_axis ", time_axis, " and batch_axis ", batch_axis, " of ",
                        DimsToString(src.dims));
  const Rows rows = {{src.dims[0], src.dims[1]}, time_axis == 0};
  if (context.input(1).dims != Dims{rows.batch()})
    return node.Invalid("lengths of dims ", DimsToString(context.input(1).dims), ", expected [",
                        rows.batch(), "]");
  Dims dims(src.dims.begin() + 1, src.dims.end());
  dims[0] = rows.dims[0] * rows.dims[1];
  ABSL_ASSIGN_OR_RETURN(const Operand table, ReshapeOf(context, src, std::move(dims), "/table"));
  ABSL_ASSIGN_OR_RETURN(const Operand reversed, Reversed(context, table, rows));
  return context.SetOutput(ReshapeOf(context, reversed, src.dims));
}

}  // namespace

TILEWIRE_OPERATORS(ReverseSequence) = {
    {"ReverseSequence", 10, 2, 2, "batch_axis time_axis", BuildReverseSequence, Folds::kInMemory},
};

}  // namespace tilewire::reader
