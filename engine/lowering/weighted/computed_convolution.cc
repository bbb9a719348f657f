// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/computed_weights.h"
#include "engine/lowering/weighted/weighted_operation.h"

namespace tilewire::lowering {
namespace {

// By Winograd for parameters alone: images of a batch that trains share the transform of the
// weights, which for a single image takes longer than it gains.
absl::StatusOr<ConvolutionDesc> DescOf(const network::ComputedConvolution& convolution,
                                       OperationContext& context) {
  ConvolutionDesc desc{.strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  const bool trains = context.plan().IsParameter(context.src(1));
  desc.prop_kind = trains ? PropKind::kForwardTraining : PropKind::kForwardInference;
  desc.algorithm =
      trains ? context.settings().convolution_algorithm : ConvolutionAlgorithm::kDirect;
  const Dims weights = GroupedDims(context.src_value(1).dims, convolution.groups);
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(context.src(0)));
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, DataType::kF32));
  if (context.srcs().size() > 2) {
    ABSL_ASSIGN_OR_RETURN(desc.bias, context.RowMajorDesc(context.src(2)));
  }
  return desc;
}

}  // namespace

// The weights are computed, so that they are packed for the primitive in every run, unless they are
// a parameter whose home the primitive reads.
absl::Status LowerComputedConvolution(const network::ComputedConvolution& convolution,
                                      OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc desc, DescOf(convolution, context));
  ABSL_RETURN_IF_ERROR(SettleParameter(desc, context.src(1), context));
  const network::Operation* activation = ActivationOf(context);
  ABSL_ASSIGN_OR_RETURN(auto primitive, CreateWithActivation(desc, &activation, context));
  if (primitive->Desc(kArgWeights).format_kind() == FormatKind::kPlanes) {
    desc.weights = primitive->Desc(kArgWeights).Unsplit();  // it splits them itself
    ABSL_ASSIGN_OR_RETURN(primitive, CreateWithActivation(desc, &activation, context));
  }
  ABSL_ASSIGN_OR_RETURN(const Place src,
                        context.InLayout(context.src(0), primitive->Desc(kArgSrc)));
  ABSL_ASSIGN_OR_RETURN(const Place weights,
                        PackInRun(context.src(1), primitive->Desc(kArgWeights), context));
  return EmitComputed(std::move(primitive), src, weights, activation, context);
}

}  // namespace tilewire::lowering
