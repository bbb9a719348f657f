// SPDX-License-Identifier: Apache-2.0
//
// From opset 13 on Softmax works along one axis. Before, it flattened its input to a matrix at the
// axis and worked along the rows; the two agree if all dimensions after the axis have size 1.
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/arithmetic/reduce_of.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {

using network::Reduce;
namespace {

// The dimensions to work along: `first` alone, or all from it on.
struct SoftmaxAxis {
  int first = 0;
  bool is_alone = true;
};

absl::StatusOr<SoftmaxAxis> ReadAxis(const NodeContext& context) {
  const bool along_one_axis = context.node.opset() >= 13;
  ABSL_ASSIGN_OR_RETURN(const int first, ReadAxis(context.node, along_one_axis ? -1 : 1,
                                                  context.input(0).dims.size()));
  return SoftmaxAxis{first, along_one_axis};
}

// x - max, and the dimensions along which the maximum was taken.
struct Shifted {
  Operand values;
  std::vector<bool> reduced;
};

absl::StatusOr<Shifted> LessMaximum(NodeContext& context, const SoftmaxAxis& axis) {
  const Operand src = context.input(0);
  Shifted shifted{.reduced = std::vector<bool>(src.dims.size(), false)};
  for (size_t d = axis.first; d < src.dims.size(); ++d)
    shifted.reduced[d] = static_cast<int>(d) == axis.first || !axis.is_alone;
  ABSL_ASSIGN_OR_RETURN(const Operand max,
                        ReduceOf(context, Reduce::Function::kMax, src, shifted.reduced, "/max"));
  ABSL_ASSIGN_OR_RETURN(shifted.values,
                        ElementwiseOf(context, {Function::kSub}, {src, max}, "/shifted"));
  return shifted;
}

// e^(x - max) / sum of e^(x - max).
absl::Status SoftmaxOfDoubles(NodeContext& context, const SoftmaxAxis& axis) {
  ABSL_ASSIGN_OR_RETURN(const Shifted shifted, LessMaximum(context, axis));
  ABSL_ASSIGN_OR_RETURN(const Operand exp,
                        ElementwiseOf(context, {Function::kExp}, {shifted.values}, "/exp"));
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        ReduceOf(context, Reduce::Function::kSum, exp, shifted.reduced, "/sum"));
  return context.SetOutput(ElementwiseOf(context, {Function::kDiv}, {exp, sum}));
}

absl::Status BuildSoftmax(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const SoftmaxAxis axis, ReadAxis(context));
  if (context.TypeOf(context.input(0)) == DataType::kF64) return SoftmaxOfDoubles(context, axis);
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  const Dims dims = context.input(0).dims;
  int64_t rows = 1, columns = 1;
  for (size_t i = 0; i < dims.size(); ++i)
    (static_cast<int>(i) < axis.first ? rows : columns) *= dims[i];
  if (axis.is_alone || columns == dims[axis.first])
    return context.SetOutput(context.Emit(network::Softmax{axis.first}, {src}, dims));
  ABSL_ASSIGN_OR_RETURN(const ValueId matrix, context.EmitReshape(src, {rows, columns}, "/matrix"));
  ABSL_ASSIGN_OR_RETURN(const ValueId result,
                        context.Emit(network::Softmax{1}, {matrix}, {rows, columns}, "/rows"));
  return context.SetOutput(context.EmitReshape(result, dims));
}

// (x - max) - log(sum of e^(x - max)).
absl::Status BuildLogSoftmax(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const SoftmaxAxis axis, ReadAxis(context));
  ABSL_ASSIGN_OR_RETURN(const Shifted shifted, LessMaximum(context, axis));
  ABSL_ASSIGN_OR_RETURN(const Operand exp,
                        ActivationOf(context, {EltwiseAlgorithm::kExp}, shifted.values, "/exp"));
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        ReduceOf(context, Reduce::Function::kSum, exp, shifted.reduced, "/sum"));
  ABSL_ASSIGN_OR_RETURN(const Operand log, ElementwiseOf(context, {Function::kLog}, {sum}, "/log"));
  return context.SetOutput(ElementwiseOf(context, {Function::kSub}, {shifted.values, log}));
}

}  // namespace

TILEWIRE_OPERATORS(Softmax) = {
    OfReals({"LogSoftmax", 1, 1, 1, "axis", BuildLogSoftmax}),
    OfReals({"Softmax", 1, 1, 1, "axis", BuildSoftmax}),
};

}  // namespace tilewire::reader
