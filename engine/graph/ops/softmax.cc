// SPDX-License-Identifier: Apache-2.0
//
// From opset 13 on Softmax works along one axis. Before, it flattened its input to a matrix at the
// axis and worked along the rows; the two agree if all dimensions after the axis have size 1.
#include "engine/base/status_macros.h"
#include "engine/graph/ops/element_functions.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

// e^(x - max) / sum of e^(x - max) along the axis, before opset 13 along all dimensions from it on.
absl::Status SoftmaxOfDoubles(NodeContext& context, int axis, bool along_one_axis) {
  using Function = Elementwise::Function;
  const Operand src = context.input(0);
  std::vector<bool> reduced(src.dims.size(), false);
  for (size_t d = axis; d < reduced.size(); ++d)
    reduced[d] = static_cast<int>(d) == axis || !along_one_axis;
  ABSL_ASSIGN_OR_RETURN(const Operand max,
                        ReduceOf(context, Reduce::Function::kMax, src, reduced, "/max"));
  ABSL_ASSIGN_OR_RETURN(const Operand shifted,
                        ElementwiseOf(context, {Function::kSub}, {src, max}, "/shifted"));
  ABSL_ASSIGN_OR_RETURN(const Operand exp,
                        ElementwiseOf(context, {Function::kExp}, {shifted}, "/exp"));
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        ReduceOf(context, Reduce::Function::kSum, exp, reduced, "/sum"));
  ABSL_ASSIGN_OR_RETURN(const Operand dst, ElementwiseOf(context, {Function::kDiv}, {exp, sum}));
  return context.SetOutput(dst);
}

absl::Status BuildSoftmax(NodeContext& context) {
  const Node& node = context.node;
  if (context.TypeOf(context.input(0)) == DataType::kF64) {
    const bool one = node.opset() >= 13;
    ABSL_ASSIGN_OR_RETURN(const int64_t given, node.Int("axis", one ? -1 : 1));
    ABSL_ASSIGN_OR_RETURN(const int at, NormalizeAxis(node, given, context.input(0).dims.size()));
    return SoftmaxOfDoubles(context, at, one);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  const Dims dims = context.input(0).dims;
  const bool along_one_axis = node.opset() >= 13;
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_axis, node.Int("axis", along_one_axis ? -1 : 1));
  ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(node, raw_axis, dims.size()));
  int64_t rows = 1, columns = 1;
  for (size_t i = 0; i < dims.size(); ++i) (static_cast<int>(i) < axis ? rows : columns) *= dims[i];
  if (along_one_axis || columns == dims[axis]) return context.Finish(Softmax{axis}, {src}, dims);
  ABSL_ASSIGN_OR_RETURN(const ValueId matrix, context.EmitReshape(src, {rows, columns}, "/matrix"));
  ABSL_ASSIGN_OR_RETURN(const ValueId result,
                        context.Emit(Softmax{1}, {matrix}, {rows, columns}, "/rows"));
  ABSL_ASSIGN_OR_RETURN(const ValueId dst, context.EmitReshape(result, dims));
  return context.SetOutput(dst);
}

// (x - max) - log(sum of e^(x - max)) along the axis, before opset 13 along all dimensions from it
// on.
absl::Status BuildLogSoftmax(NodeContext& context) {
  using Function = Elementwise::Function;
  const Operand src = context.input(0);
  const bool along_one_axis = context.node.opset() >= 13;
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_axis, context.node.Int("axis", along_one_axis ? -1 : 1));
  ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context.node, raw_axis, src.dims.size()));
  std::vector<bool> reduced(src.dims.size(), false);
  for (size_t d = axis; d < reduced.size(); ++d)
    reduced[d] = static_cast<int>(d) == axis || !along_one_axis;
  ABSL_ASSIGN_OR_RETURN(const Operand max,
                        ReduceOf(context, Reduce::Function::kMax, src, reduced, "/max"));
  ABSL_ASSIGN_OR_RETURN(const Operand shifted,
                        ElementwiseOf(context, {Function::kSub}, {src, max}, "/shifted"));
  ABSL_ASSIGN_OR_RETURN(const Operand exp,
                        ActivationOf(context, {jit::EltwiseAlgorithm::kExp}, shifted, "/exp"));
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        ReduceOf(context, Reduce::Function::kSum, exp, reduced, "/sum"));
  ABSL_ASSIGN_OR_RETURN(const Operand log, ElementwiseOf(context, {Function::kLog}, {sum}, "/log"));
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        ElementwiseOf(context, {Function::kSub}, {shifted, log}));
  return context.SetOutput(dst);
}

}  // namespace

TILEWIRE_OPERATORS(Softmax) = {
    {"LogSoftmax", 1, 1, 1, "axis", BuildLogSoftmax},
    {"Softmax", 1, 1, 1, "axis", BuildSoftmax},
};

}  // namespace tilewire::graph
