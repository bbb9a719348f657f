// SPDX-License-Identifier: Apache-2.0
//
// dst = x * (bias + alpha / size * sum of x^2 over `size` channels around)^-beta. An even size,
// which takes one more channel after than before, is composed of operations: the sum is `size`
// times an average pooling over [channel, pixel] that counts its padding.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

absl::Status BuildLrn(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("alpha", 1e-4f));
  ABSL_ASSIGN_OR_RETURN(const float beta, node.Float("beta", 0.75f));
  ABSL_ASSIGN_OR_RETURN(const float bias, node.Float("bias", 1.0f));
  ABSL_ASSIGN_OR_RETURN(const int64_t size, node.Int("size", 0));
  if (size < 1 || size > 1024 || src.dims.size() < 3)
    return node.Invalid("size ", size, " of ", DimsToString(src.dims));
  const Dims& dims = src.dims;
  if (size % 2 == 1 && dims.size() <= 5) {
    ABSL_ASSIGN_OR_RETURN(const ValueId value, context.Runtime(0));
    return context.SetOutput(context.Emit(network::Lrn{size, alpha, beta, bias}, {value}, dims));
  }
  const int64_t pixels = *CheckedProduct(absl::MakeConstSpan(dims).subspan(2));
  const Dims flat = {dims[0], 1, dims[1], pixels};
  ABSL_ASSIGN_OR_RETURN(const Operand squares,
                        ActivationOf(context, {EltwiseAlgorithm::kSquare}, src, "/squares"));
  ABSL_ASSIGN_OR_RETURN(const Operand rows, ReshapeOf(context, squares, flat, "/rows"));
  network::Pooling pooling{network::Pooling::Algorithm::kAvgIncludePadding,
                           {size, 1},
                           {1, 1},
                           {(size - 1) / 2, 0},
                           {size - 1 - (size - 1) / 2, 0}};
  ABSL_ASSIGN_OR_RETURN(const ValueId mean,
                        context.Emit(std::move(pooling), {rows.value}, flat, "/mean"));
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        LinearOf(context, {nullptr, mean, flat}, alpha, bias, "/sum"));
  ABSL_ASSIGN_OR_RETURN(const Operand factor,
                        ActivationOf(context, {EltwiseAlgorithm::kPow, 1, -beta}, sum, "/factor"));
  ABSL_ASSIGN_OR_RETURN(const Operand shaped, ReshapeOf(context, factor, dims, "/shaped"));
  return context.SetOutput(ElementwiseOf(context, {Function::kMul}, {src, shaped}));
}

}  // namespace

TILEWIRE_OPERATORS(Lrn) = {
    OfReals({"LRN", 1, 1, 1, "alpha beta bias size", BuildLrn}),
};

}  // namespace tilewire::reader
