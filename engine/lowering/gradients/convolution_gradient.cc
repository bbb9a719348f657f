// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/weighted_operation.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// The values that a gradient of a convolution is about.
struct ConvolutionValues {
  ValueId src, weights, dst;
};

// Weights, or their gradient, are in row-major order: what packs them does so in every run, because
// an update changes them. Not by Winograd, as forward.
absl::StatusOr<ConvolutionDesc> GradientDescOf(const network::ComputedConvolution& forward,
                                               PropKind prop_kind, const ConvolutionValues& values,
                                               const OperationContext& context) {
  ConvolutionDesc desc{.prop_kind = prop_kind,
                       .algorithm = ConvolutionAlgorithm::kDirect,
                       .strides = forward.strides,
                       .dilations = forward.dilations,
                       .padding_left = forward.padding_left,
                       .padding_right = forward.padding_right};
  const Dims weights = GroupedDims(context.value(values.weights).dims, forward.groups);
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(values.src));
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(values.dst));
  ABSL_ASSIGN_OR_RETURN(desc.weights, runtime::PlainDesc(weights, DataType::kF32,
                                                         /*channels_last=*/false));
  return desc;
}

}  // namespace

absl::Status LowerConvolutionDataGradient(const network::ConvolutionDataGradient& gradient,
                                          OperationContext& context) {
  const ValueId dy = context.src(0), weights = context.src(1);
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc desc,
                        GradientDescOf(gradient.forward, PropKind::kBackwardData,
                                       {context.dst(), weights, dy}, context));
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  ABSL_ASSIGN_OR_RETURN(const Place from, context.InLayout(dy, primitive->Desc(kArgDiffDst)));
  ABSL_ASSIGN_OR_RETURN(const Place plain, context.RowMajor(weights));
  return context.EmitGradient(std::move(primitive),
                              {{kArgDiffDst, from.buffer}, {kArgWeights, plain.buffer}});
}

absl::Status LowerConvolutionWeightsGradient(const network::ConvolutionWeightsGradient& gradient,
                                             OperationContext& context) {
  const ValueId dy = context.src(0), src = context.src(1);
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc desc,
                        GradientDescOf(gradient.forward, PropKind::kBackwardWeights,
                                       {src, context.dst(), dy}, context));
  if (gradient.by_bias) {
    ABSL_ASSIGN_OR_RETURN(desc.bias, context.RowMajorDesc(context.more_dst(0)));
  }
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  ABSL_ASSIGN_OR_RETURN(const Place from, context.InLayout(dy, primitive->Desc(kArgDiffDst)));
  ABSL_ASSIGN_OR_RETURN(const Place read, context.InLayout(src, primitive->Desc(kArgSrc)));
  Bindings bindings = {{kArgDiffDst, from.buffer}, {kArgSrc, read.buffer}};
  context.ConsumeSources();
  if (gradient.by_bias) {
    const Place by_bias = context.plan().NewPlace(desc.bias);
    bindings.push_back({kArgDiffBias, by_bias.buffer});
    context.plan().Bind(context.more_dst(0), by_bias);
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain, context.RowMajorDesc(context.dst()));
  const Place by_weights = context.plan().NewPlace(plain);
  bindings.push_back({kArgDiffWeights, by_weights.buffer});
  context.Emit(std::move(primitive), std::move(bindings));
  return context.BindResult(by_weights);
}

}  // namespace tilewire::lowering
