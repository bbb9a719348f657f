// SPDX-License-Identifier: Apache-2.0
//
// OneHot: along a new axis, the second of two values where its index is the one that the source
// names, the first elsewhere. Hardmax: 1 at the first largest element along an axis, 0 elsewhere.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// A plan holds so many numbers more than once, and requests may name the depth.
constexpr int64_t kMostDepth = 1 << 20;

// Whole numbers from `first` on along `axis` of a tensor of `rank` dimensions, broadcast along the
// others.
Operand Counted(std::string name, int64_t first, int64_t count, size_t rank, int axis) {
  std::vector<int64_t> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = first + i;
  Dims dims(rank - axis, 1);
  dims[0] = count;
  return OperandOf(MakeInts(std::move(name), dims, std::move(numbers)));
}

absl::StatusOr<int64_t> ReadDepth(const NodeContext& context) {
  const ConstantPtr& given = context.input(1).constant;
  if (given == nullptr) return context.node.Unimplemented("a depth that is computed at run time");
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr depth, InMemory(given));
  if (depth->count() != 1) return context.node.Invalid("the depth is not one number");
  const double number = depth->is_float ? depth->floats[0] : static_cast<double>(depth->ints[0]);
  if (!(number >= 1 && number <= kMostDepth)) {
    const std::string text =
        depth->is_float ? absl::StrCat(depth->floats[0]) : absl::StrCat(depth->ints[0]);
    return context.node.Invalid("a depth of ", text, "; allowed are 1 to ", kMostDepth);
  }
  return static_cast<int64_t>(number);
}

absl::Status BuildOneHot(NodeContext& context) {
  const Node& node = context.node;
  const Operand indices = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const int64_t depth, ReadDepth(context));
  if (context.input(2).dims != Dims{2}) return node.Invalid("the values are not two");
  const size_t rank = indices.dims.size() + 1;
  ABSL_ASSIGN_OR_RETURN(const int axis, ReadAxis(node, -1, rank));
  Dims dims = indices.dims;
  dims.insert(dims.begin() + axis, 1);
  ABSL_ASSIGN_OR_RETURN(const Operand named,
                        ReshapeOf(context, indices, std::move(dims), "/raised"));
  // Negative indices count from the end.
  const std::string& name = context.output_name();
  ABSL_ASSIGN_OR_RETURN(
      const Operand from_start,
      ElementwiseOf(context, {Function::kEqual},
                    {named, Counted(name + "/numbers", 0, depth, rank, axis)}, "/from_start"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand from_end,
      ElementwiseOf(context, {Function::kEqual},
                    {named, Counted(name + "/negative", -depth, depth, rank, axis)}, "/from_end"));
  ABSL_ASSIGN_OR_RETURN(const Operand is_named, ElementwiseOf(context, {Function::kOr},
                                                              {from_start, from_end}, "/is_named"));
  const Operand& values = context.input(2);
  ABSL_ASSIGN_OR_RETURN(const Operand off, SelectAlong(context, values, 0, {{0, 1, 1}}, "/off"));
  ABSL_ASSIGN_OR_RETURN(const Operand on, SelectAlong(context, values, 0, {{1, 1, 1}}, "/on"));
  return context.SetOutput(ElementwiseOf(context, {Function::kWhere}, {is_named, on, off}));
}

// From opset 13 on along one axis; before, along all dimensions from it on.
absl::Status BuildHardmax(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  const bool along_one_axis = node.opset() >= 13;
  ABSL_ASSIGN_OR_RETURN(int axis, ReadAxis(node, along_one_axis ? -1 : 1, src.dims.size()));
  Dims dims = src.dims;
  if (!along_one_axis) {
    int64_t rows = 1, columns = 1;
    for (size_t d = 0; d < dims.size(); ++d)
      (static_cast<int>(d) < axis ? rows : columns) *= dims[d];
    dims = {rows, columns};
    axis = 1;
  }
  ABSL_RETURN_IF_ERROR(CheckCountable(node, dims[axis]));
  ABSL_ASSIGN_OR_RETURN(ValueId value, context.AsValue(src));
  ABSL_ASSIGN_OR_RETURN(value, context.EmitReshape(value, dims, "/matrix"));
  Dims kept = dims;
  kept[axis] = 1;
  ABSL_ASSIGN_OR_RETURN(const ValueId largest,
                        context.Emit(network::TopK{axis, /*largest=*/true, /*indices=*/true},
                                     {value}, kept, "/largest"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand marked,
      ElementwiseOf(context, {Function::kEqual},
                    {{nullptr, largest, kept, /*is_integer=*/true},
                     Counted(context.output_name() + "/numbers", 0, dims[axis], dims.size(), axis)},
                    "/marked"));
  return context.SetOutput(ReshapeOf(context, marked, src.dims));
}

}  // namespace

TILEWIRE_OPERATORS(OneHot) = {
    OfReals({"Hardmax", 1, 1, 1, "axis", BuildHardmax}),
    {"OneHot", 9, 3, 3, "axis", BuildOneHot, Folds::kInMemory, LikeThirdInput, Inputs({1})},
};

}  // namespace tilewire::reader
