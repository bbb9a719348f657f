// SPDX-License-Identifier: Apache-2.0
//
// Normalisations by statistics of the tensor itself, as operations that follow each other:
//
//   dst = scale * (x - mean) / sqrt(mean of (x - mean)^2 + epsilon) + bias
//
// over the spatial dimensions (InstanceNormalization), over all dimensions from an axis on
// (LayerNormalization), or over named axes without scale and bias (MeanVarianceNormalization); and
// LRN, which divides by a sum over near channels.
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/elementwise.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"

namespace tilewire::graph {
namespace {

using Function = Elementwise::Function;
using jit::EltwiseAlgorithm;

Operand Number(const NodeContext& context, absl::string_view name, float value) {
  return {MakeFloats(absl::StrCat(context.output_name(), "/", name), {}, {value}), kNoValue, {}};
}

// (x - mean) / sqrt(variance + epsilon)
absl::StatusOr<Operand> Standardized(NodeContext& context, const Operand& src,
                                     const std::vector<bool>& reduced, float epsilon) {
  ABSL_ASSIGN_OR_RETURN(const Operand mean,
                        ReduceOf(context, Reduce::Function::kMean, src, reduced, "/mean"));
  ABSL_ASSIGN_OR_RETURN(const Operand centred,
                        ElementwiseOf(context, {Function::kSub}, {src, mean}, "/centred"));
  ABSL_ASSIGN_OR_RETURN(const Operand squares,
                        EltwiseOf(context, {EltwiseAlgorithm::kSquare}, centred, "/squares"));
  ABSL_ASSIGN_OR_RETURN(const Operand variance,
                        ReduceOf(context, Reduce::Function::kMean, squares, reduced, "/variance"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand shifted,
      EltwiseOf(context, {EltwiseAlgorithm::kLinear, 1, epsilon}, variance, "/shifted"));
  ABSL_ASSIGN_OR_RETURN(const Operand deviation,
                        EltwiseOf(context, {EltwiseAlgorithm::kSqrt}, shifted, "/deviation"));
  return ElementwiseOf(context, {Function::kDiv}, {centred, deviation}, "/standardized");
}

}  // namespace

absl::Status LowerInstanceNormalization(NodeContext& context) {
  const Operand src = context.input(0);
  const size_t rank = src.dims.size();
  if (rank < 3) return context.node.Invalid("the input has no spatial dimensions");
  ABSL_ASSIGN_OR_RETURN(const float epsilon, context.node.Float("epsilon", 1e-5f));
  std::vector<bool> reduced(rank, true);
  reduced[0] = reduced[1] = false;
  ABSL_ASSIGN_OR_RETURN(Operand result, Standardized(context, src, reduced, epsilon));
  for (int i = 1; i <= 2; ++i) {
    if (context.input(i).dims != Dims{src.dims[1]})
      return context.node.Invalid(absl::StrCat("input ", i, " is not one number a channel"));
    Dims channel(rank - 1, 1);
    channel[0] = src.dims[1];
    ABSL_ASSIGN_OR_RETURN(
        const Operand factor,
        ReshapeOf(context, context.input(i), std::move(channel), absl::StrCat("/channel", i)));
    ABSL_ASSIGN_OR_RETURN(result, ElementwiseOf(context, {i == 1 ? Function::kMul : Function::kAdd},
                                                {result, factor}, i == 1 ? "/scaled" : ""));
  }
  return context.SetOutput(result);
}

absl::Status LowerLayerNormalization(NodeContext& context) {
  const Operand src = context.input(0);
  for (size_t i = 1; i < context.node.outputs.size(); ++i) {
    if (context.node.outputs[i] != kNoTensor)
      return context.node.Unimplemented("mean and deviation as outputs");
  }
  ABSL_ASSIGN_OR_RETURN(const int64_t raw_axis, context.node.Int("axis", -1));
  ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context.node, raw_axis, src.dims.size()));
  ABSL_ASSIGN_OR_RETURN(const float epsilon, context.node.Float("epsilon", 1e-5f));
  std::vector<bool> reduced(src.dims.size(), false);
  for (size_t d = axis; d < reduced.size(); ++d) reduced[d] = true;
  ABSL_ASSIGN_OR_RETURN(Operand result, Standardized(context, src, reduced, epsilon));
  ABSL_ASSIGN_OR_RETURN(
      result, ElementwiseOf(context, {Function::kMul}, {result, context.input(1)}, "/scaled"));
  if (context.Has(2)) {
    ABSL_ASSIGN_OR_RETURN(result,
                          ElementwiseOf(context, {Function::kAdd}, {result, context.input(2)}));
  }
  return context.SetOutput(result);
}

absl::Status LowerMeanVarianceNormalization(NodeContext& context) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> axes, context.node.Ints("axes", {0, 2, 3}));
  std::vector<bool> reduced(src.dims.size(), false);
  for (int64_t raw_axis : axes) {
    ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(context.node, raw_axis, src.dims.size()));
    reduced[axis] = true;
  }
  ABSL_ASSIGN_OR_RETURN(const Operand result, Standardized(context, src, reduced, 1e-9f));
  return context.SetOutput(result);
}

// dst = x * (bias + alpha / size * sum of x^2 over `size` channels around)^-beta. The sum is `size`
// times an average pooling over [channel, pixel] that counts its padding.
absl::Status LowerLrn(NodeContext& context) {
  const Node& node = context.node;
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("alpha", 1e-4f));
  ABSL_ASSIGN_OR_RETURN(const float beta, node.Float("beta", 0.75f));
  ABSL_ASSIGN_OR_RETURN(const float bias, node.Float("bias", 1.0f));
  ABSL_ASSIGN_OR_RETURN(const int64_t size, node.Int("size", 0));
  if (size < 1 || size > 1024 || src.dims.size() < 3)
    return node.Invalid(absl::StrCat("size ", size, " of ", DimsToString(src.dims)));
  const Dims& dims = src.dims;
  const int64_t pixels = *CheckedProduct(absl::MakeConstSpan(dims).subspan(2));
  const Dims flat = {dims[0], 1, dims[1], pixels};
  ABSL_ASSIGN_OR_RETURN(const Operand squares,
                        EltwiseOf(context, {EltwiseAlgorithm::kSquare}, src, "/squares"));
  ABSL_ASSIGN_OR_RETURN(const Operand rows, ReshapeOf(context, squares, flat, "/rows"));
  Pooling pooling{Pooling::Algorithm::kAvgIncludePadding,
                  {size, 1},
                  {1, 1},
                  {(size - 1) / 2, 0},
                  {size - 1 - (size - 1) / 2, 0}};
  ABSL_ASSIGN_OR_RETURN(const ValueId mean,
                        context.Emit(std::move(pooling), {rows.value}, flat, "/mean"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand sum,
      EltwiseOf(context, {EltwiseAlgorithm::kLinear, alpha, bias}, {nullptr, mean, flat}, "/sum"));
  ABSL_ASSIGN_OR_RETURN(
      const Operand factor,
      ElementwiseOf(context, {Function::kPow}, {sum, Number(context, "power", -beta)}, "/factor"));
  ABSL_ASSIGN_OR_RETURN(const Operand shaped, ReshapeOf(context, factor, dims, "/shaped"));
  ABSL_ASSIGN_OR_RETURN(const Operand dst, ElementwiseOf(context, {Function::kMul}, {src, shaped}));
  return context.SetOutput(dst);
}

}  // namespace tilewire::graph
