// SPDX-License-Identifier: Apache-2.0
//
// Matrices by the place of an element: Trilu keeps one side of a diagonal, EyeLike is 1 on it.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// The number of the diagonal: 0 is the main one, positive ones are above it.
constexpr int64_t kFarthestDiagonal = int64_t{1} << 40;

absl::Status CheckDiagonal(const Node& node, int64_t k) {
  if (k >= -kFarthestDiagonal && k <= kFarthestDiagonal) return absl::OkStatus();
  return node.Invalid("diagonal ", k);
}

// 1 where `holds(column - row)` does, row-major.
template <typename Holds>
absl::StatusOr<std::vector<int64_t>> Marked(const Node& node, int64_t rows, int64_t columns,
                                            Holds holds) {
  const std::optional<int64_t> count = CheckedMul(rows, columns);
  if (!count || *count > kLargestFold)
    return node.Unimplemented("matrices of more than ", kLargestFold, " elements");
  std::vector<int64_t> marks;
  for (int64_t row = 0; *count > 0 && row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) marks.push_back(holds(column - row));
  }
  return marks;
}

absl::Status BuildTrilu(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  const size_t rank = src.dims.size();
  if (rank < 2) return node.Invalid("an input of rank ", rank);
  ABSL_ASSIGN_OR_RETURN(const int64_t upper, node.Int("upper", 1));
  int64_t k = 0;
  if (context.Has(1)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr diagonal, context.Ints(1));
    if (diagonal->count() != 1) return node.Invalid("k is not one number");
    k = diagonal->ints[0];
  }
  ABSL_RETURN_IF_ERROR(CheckDiagonal(node, k));
  const int64_t rows = src.dims[rank - 2], columns = src.dims[rank - 1];
  ABSL_ASSIGN_OR_RETURN(std::vector<int64_t> kept,
                        Marked(node, rows, columns, [&](int64_t distance) {
                          return upper != 0 ? distance >= k : distance <= k;
                        }));
  const std::string& name = context.output_name();
  const Operand mask = OperandOf(MakeInts(name + "/kept", {rows, columns}, std::move(kept)));
  const Operand zero = context.IsInteger(0) ? OperandOf(MakeInts(name + "/zero", {}, {0}))
                                            : context.KnownFloat("/zero", 0);
  return context.SetOutput(ElementwiseOf(context, {Function::kWhere}, {mask, src, zero}));
}

// The type of the attribute, or else that of the input, whose elements are not read.
ElementType TypeOfEye(const TypedNode& node, int) { return node.named("dtype", node.input(0)); }

absl::Status BuildEyeLike(NodeContext& context) {
  const Node& node = context.node;
  const Dims dims = context.input(0).dims;
  if (dims.size() != 2) return node.Invalid("an input of rank ", dims.size());
  ABSL_ASSIGN_OR_RETURN(const int64_t k, node.Int("k", 0));
  ABSL_RETURN_IF_ERROR(CheckDiagonal(node, k));
  ABSL_ASSIGN_OR_RETURN(const int64_t asked, node.Int("dtype", 0));
  if (asked != 0 && !TypeOfElements(asked))
    return node.Unimplemented("of ", ElementTypeText(asked));
  ABSL_ASSIGN_OR_RETURN(
      std::vector<int64_t> ones,
      Marked(node, dims[0], dims[1], [&](int64_t distance) { return distance == k; }));
  if (IsIntegerOrBool(context.ElementTypeOfOutput(0)))
    return context.SetOutput(MakeInts(context.output_name(), dims, std::move(ones)));
  return context.SetOutput(
      MakeFloats(context.output_name(), dims, std::vector<float>(ones.begin(), ones.end())));
}

}  // namespace

TILEWIRE_OPERATORS(Triangle) = {
    {"EyeLike", 9, 1, 1, "dtype k", BuildEyeLike, Folds::kInMemory, TypeOfEye},
    {"Trilu", 14, 1, 2, "upper", BuildTrilu, Folds::kInMemory, LikeFirstInput, Inputs({1})},
};

}  // namespace tilewire::reader
