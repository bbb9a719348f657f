// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/weighted_operation.h"

namespace tilewire::lowering {

absl::Status LowerDeconvolution(const network::Deconvolution& deconvolution,
                                OperationContext& context) {
  const WeightedOperation operation(deconvolution);
  ABSL_ASSIGN_OR_RETURN(const Fusion fusion, PlanFusion(operation, context.settings()));
  const Dims weights = GroupedDims(deconvolution.weights.dims, deconvolution.groups);
  DeconvolutionDesc desc{.strides = deconvolution.strides,
                         .dilations = deconvolution.dilations,
                         .padding_left = deconvolution.padding_left,
                         .padding_right = deconvolution.padding_right};
  ABSL_ASSIGN_OR_RETURN(desc.src, context.AnyDesc(context.src()));
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(desc.bias, BiasDesc(fusion.bias));
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc, fusion.attributes));
  return context.BindResult(EmitWeighted(operation, fusion, std::move(primitive), context));
}

}  // namespace tilewire::lowering
