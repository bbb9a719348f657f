// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"

namespace tilewire::lowering {

// In row-major order, as the operation itself. Of scale and shift the primitive reads the scale
// alone.
absl::Status LowerLayerNormalizationGradient(const network::LayerNormalizationGradient& gradient,
                                             OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.RowMajor(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(const Place dy, context.RowMajor(context.src(0)));
  ABSL_ASSIGN_OR_RETURN(const Place mean, context.RowMajor(context.src(2)));
  ABSL_ASSIGN_OR_RETURN(const Place variance, context.RowMajor(context.src(3)));
  Bindings bindings = {{kArgDiffDst, dy.buffer},
                       {kArgSrc, src.buffer},
                       {kArgMean, mean.buffer},
                       {kArgVariance, variance.buffer}};
  if (gradient.scales) {
    const ValueId scale = context.src(4);
    ABSL_ASSIGN_OR_RETURN(const Place both, PackScaleAndShift(scale, scale, context));
    bindings.push_back({kArgWeights, both.buffer});
  }
  ABSL_ASSIGN_OR_RETURN(
      auto primitive,
      context.Create(LayerNormalizationDesc{
          .prop_kind = gradient.by_parameters ? PropKind::kBackward : PropKind::kBackwardData,
          .src = src.desc,
          .epsilon = gradient.epsilon,
          .use_scale_shift = gradient.scales,
          .diff_src = src.desc,
          .diff_dst = src.desc}));
  if (gradient.by_parameters) {
    ABSL_ASSIGN_OR_RETURN(const Place both,
                          BindParameterGradients(primitive->Desc(kArgDiffWeights), context));
    bindings.push_back({kArgDiffWeights, both.buffer});
  }
  return context.EmitGradient(std::move(primitive), std::move(bindings));
}

}  // namespace tilewire::lowering
