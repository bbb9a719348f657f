// SPDX-License-Identifier: Apache-2.0
//
// CumSum: sums of all elements up to each along an axis. With y the sums of the last n elements, y
// plus y shifted by n are the sums of the last 2 n: as many steps as the size has bits.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// The tensor shifted along the axis by `by` < size elements towards its end, or towards its start;
// zeros come in.
absl::StatusOr<Operand> ShiftedBy(NodeContext& context, const Operand& src, int axis, int64_t by,
                                  bool to_start) {
  const IndexRun zeros = {-1, 0, by}, rest = {to_start ? by : 0, 1, src.dims[axis] - by};
  return SelectAlong(context, src, axis, to_start ? IndexRuns{rest, zeros} : IndexRuns{zeros, rest},
                     absl::StrCat("/shifted", by));
}

// Everything but zeros is shifted out of an axis of one element.
absl::StatusOr<Operand> WithoutOwn(NodeContext& context, const Operand& src, int axis,
                                   bool reversed) {
  if (src.dims[axis] > 1) return ShiftedBy(context, src, axis, 1, reversed);
  return SelectAlong(context, src, axis, {{-1, 0, 1}}, "/zero");
}

absl::Status BuildCumSum(NodeContext& context) {
  const Node& node = context.node;
  Operand sums = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr given, context.Ints(1));
  if (given->count() != 1) return node.Invalid("the axis is not one number");
  ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(node, given->ints[0], sums.dims.size()));
  ABSL_ASSIGN_OR_RETURN(const int64_t reverse, node.Int("reverse", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t exclusive, node.Int("exclusive", 0));
  const int64_t size = sums.dims[axis];
  if (size == 0) return context.SetOutput(sums);
  if (exclusive != 0) {
    ABSL_ASSIGN_OR_RETURN(sums, WithoutOwn(context, sums, axis, reverse != 0));
  }
  for (int64_t of = 1; of < size; of *= 2) {
    ABSL_ASSIGN_OR_RETURN(const Operand before, ShiftedBy(context, sums, axis, of, reverse != 0));
    ABSL_ASSIGN_OR_RETURN(sums, ElementwiseOf(context, {Function::kAdd}, {sums, before},
                                              2 * of < size ? absl::StrCat("/sums", 2 * of) : ""));
  }
  return context.SetOutput(sums);
}

}  // namespace

TILEWIRE_OPERATORS(CumSum) = {
    {"CumSum", 11, 2, 2, "exclusive reverse", BuildCumSum, Folds::kInMemory, LikeFirstInput,
     Inputs({1})},
};

}  // namespace tilewire::reader
