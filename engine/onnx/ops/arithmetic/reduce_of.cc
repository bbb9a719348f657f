// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/arithmetic/reduce_of.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/node_context.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/products/matmul.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

using Reduction = network::Reduce::Function;

// The elements that are reduced to one, as the rows of a matrix.
absl::StatusOr<Operand> LinesOf(NodeContext& context, const Operand& src,
                                const std::vector<bool>& reduced, const std::string& suffix) {
  std::vector<int> order;
  Dims dims;
  int64_t rows = 1, columns = 1;
  for (const bool last : {false, true}) {
    for (size_t d = 0; d < reduced.size(); ++d) {
      if (reduced[d] != last) continue;
      order.push_back(static_cast<int>(d));
      dims.push_back(src.dims[d]);
      (last ? columns : rows) *= src.dims[d];
    }
  }
  Operand turned = src;
  if (!absl::c_is_sorted(order)) {
    ABSL_ASSIGN_OR_RETURN(turned.value, context.Emit(network::Transpose{std::move(order)},
                                                     {src.value}, dims, suffix + "/turned"));
    turned.dims = std::move(dims);
  }
  return ReshapeOf(context, turned, {rows, columns}, suffix + "/lines");
}

absl::StatusOr<Operand> SumOfRows(NodeContext& context, const Operand& lines,
                                  const std::string& suffix) {
  const std::string name = absl::StrCat(context.output_name(), suffix, "/ones");
  const size_t columns = lines.dims[1];
  const bool is_real = !IsIntegerType(context.TypeOf(lines));
  const ConstantPtr ones =
      is_real ? MakeFloats(name, {lines.dims[1], 1}, std::vector<float>(columns, 1))
              : MakeInts(name, {lines.dims[1], 1}, std::vector<int64_t>(columns, 1));
  return MatMulOf(context, lines, OperandOf(ones), suffix + "/sums");
}

absl::StatusOr<Operand> BestOfRows(NodeContext& context, const Operand& lines, bool largest,
                                   const std::string& suffix) {
  const Dims dims = {lines.dims[0], 1};
  return context.EmitOperand(network::TopK{/*axis=*/1, largest}, {lines.value}, dims,
                             suffix + "/best", context.TypeOf(lines));
}

// The first half of the columns times the second, until one is left; one that is over waits for the
// last product.
absl::StatusOr<Operand> ProductOfRows(NodeContext& context, Operand lines,
                                      const std::string& suffix) {
  std::vector<Operand> factors;
  while (lines.dims[1] > 1) {
    const int64_t columns = lines.dims[1], half = columns / 2;
    const std::string name = absl::StrCat(suffix, "/product", columns);
    if (columns % 2 != 0) {
      ABSL_ASSIGN_OR_RETURN(factors.emplace_back(),
                            SelectAlong(context, lines, 1, {{columns - 1, 1, 1}}, name + "/last"));
    }
    ABSL_ASSIGN_OR_RETURN(const Operand first,
                          SelectAlong(context, lines, 1, {{0, 1, half}}, name + "/first"));
    ABSL_ASSIGN_OR_RETURN(const Operand second,
                          SelectAlong(context, lines, 1, {{half, 1, half}}, name + "/second"));
    ABSL_ASSIGN_OR_RETURN(lines, ElementwiseOf(context, {Function::kMul}, {first, second}, name));
  }
  for (size_t i = 0; i < factors.size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(lines, ElementwiseOf(context, {Function::kMul}, {lines, factors[i]},
                                               absl::StrCat(suffix, "/factor", i)));
  }
  return lines;
}

// Reduces lines of at least one element.
absl::StatusOr<Operand> ReducedRows(NodeContext& context, Reduction function, const Operand& lines,
                                    const std::string& suffix) {
  if (function == Reduction::kMax || function == Reduction::kMin)
    return BestOfRows(context, lines, function == Reduction::kMax, suffix);
  if (function == Reduction::kProduct) return ProductOfRows(context, lines, suffix);
  return SumOfRows(context, lines, suffix);
}

// ReduceOf() of a value of a type other than f32. Sums and products wrap around.
//   kUnimplemented  means, and a tensor without elements
absl::StatusOr<Operand> ReduceInType(NodeContext& context, Reduction function, const Operand& src,
                                     const std::vector<bool>& reduced, absl::string_view suffix) {
  const std::string name(suffix);
  const bool divides = function == Reduction::kMean && context.TypeOf(src) == DataType::kF64;
  if ((function == Reduction::kMean && !divides) || ElementCount(src.dims).value_or(0) == 0 ||
      ElementCount(src.dims) > kLargestFold) {
    return context.node.Unimplemented("takes ", DataTypeName(context.TypeOf(src)),
                                      " here; supported is f32");
  }
  ABSL_ASSIGN_OR_RETURN(Operand lines, LinesOf(context, src, reduced, name));
  if (function == Reduction::kSumOfAbs) {
    ABSL_ASSIGN_OR_RETURN(lines,
                          ActivationOf(context, {EltwiseAlgorithm::kAbs}, lines, name + "/sizes"));
  }
  if (function == Reduction::kSumOfSquares) {
    ABSL_ASSIGN_OR_RETURN(
        lines, ElementwiseOf(context, {Function::kMul}, {lines, lines}, name + "/squares"));
  }
  ABSL_ASSIGN_OR_RETURN(Operand column, ReducedRows(context, function, lines, name));
  if (divides) {
    const Operand count =
        OperandOf(network::MakeDoubles(absl::StrCat(context.output_name(), name, "/count"), {},
                                       {static_cast<double>(lines.dims[1])}));
    ABSL_ASSIGN_OR_RETURN(
        column, ElementwiseOf(context, {Function::kDiv}, {column, count}, name + "/mean"));
  }
  return ReshapeOf(context, column, ReducedDims(src.dims, reduced), suffix);
}

}  // namespace

Dims ReducedDims(Dims dims, const std::vector<bool>& reduced) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (reduced[d]) dims[d] = 1;
  }
  return dims;
}

absl::StatusOr<Operand> ReduceOf(NodeContext& context, network::Reduce::Function function,
                                 const Operand& src, const std::vector<bool>& reduced,
                                 absl::string_view suffix) {
  if (context.TypeOf(src) != DataType::kF32)
    return ReduceInType(context, function, src, reduced, suffix);
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(src));
  return context.EmitOperand(network::Reduce{function}, {value}, ReducedDims(src.dims, reduced),
                             suffix);
}

}  // namespace tilewire::reader
