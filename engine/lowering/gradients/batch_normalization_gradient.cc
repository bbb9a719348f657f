// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"
#include "engine/lowering/plan/strided_view.h"

namespace tilewire::lowering {

absl::StatusOr<Place> BindParameterGradients(const MemoryDesc& both, OperationContext& context) {
  const Place place = context.plan().NewPlace(both);
  for (int64_t row : {0, 1}) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc one, both.SubMemory({1, both.dim(1)}, {row, 0}));
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc view, StridedView(one, {both.dim(1)}));
    context.plan().Bind(context.more_dst(row), {place.buffer, view});
  }
  return place;
}

namespace {

BatchNormalizationDesc DescOf(const network::BatchNormalizationGradient& gradient,
                              const MemoryDesc& src, const MemoryDesc& passed) {
  BatchNormalizationDesc desc{
      .prop_kind = gradient.by_parameters ? PropKind::kBackward : PropKind::kBackwardData,
      .src = src,
      .epsilon = gradient.forward.epsilon,
      .use_global_stats = gradient.forward.uses_given_statistics,
      .fuse_relu = gradient.forward.relu,
      .diff_src = src,
      .diff_dst = src};
  if (gradient.forward.relu) desc.workspace = passed;
  if (gradient.by_addend) desc.addend = src;
  return desc;
}

}  // namespace

// In the layout of src. Of scale and shift the primitive reads the scale alone.
absl::Status LowerBatchNormalizationGradient(const network::BatchNormalizationGradient& gradient,
                                             OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(const Place dy, context.InLayout(context.src(0), src.desc));
  const ValueId scale = context.src(2);
  ABSL_ASSIGN_OR_RETURN(const Place parameters, PackScaleAndShift(scale, scale, context));
  ABSL_ASSIGN_OR_RETURN(const Place mean, context.RowMajor(context.src(3)));
  ABSL_ASSIGN_OR_RETURN(const Place variance, context.RowMajor(context.src(4)));
  Place passed;
  if (gradient.forward.relu) {
    ABSL_ASSIGN_OR_RETURN(passed, context.Home(context.src(5)));
  }
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(DescOf(gradient, src.desc, passed.desc)));
  Bindings bindings = {{kArgDiffDst, dy.buffer},
                       {kArgSrc, src.buffer},
                       {kArgWeights, parameters.buffer},
                       {kArgMean, mean.buffer},
                       {kArgVariance, variance.buffer}};
  if (gradient.by_parameters) {
    ABSL_ASSIGN_OR_RETURN(const Place both,
                          BindParameterGradients(primitive->Desc(kArgDiffWeights), context));
    bindings.push_back({kArgDiffWeights, both.buffer});
  }
  if (gradient.forward.relu) bindings.push_back({kArgWorkspace, passed.buffer});
  context.ConsumeSources();
  if (gradient.by_addend) {
    // Over dy, which the primitive reads no more once it has written it.
    const auto dead = context.DeadGradient(*primitive, bindings, kArgDiffSrc1);
    const Place of_addend = dead ? *dead : context.plan().NewPlace(src.desc);
    bindings.push_back({kArgDiffSrc1, of_addend.buffer});
    context.plan().Bind(context.more_dst(gradient.by_parameters ? 2 : 0), of_addend);
  }
  const Place dst = context.plan().NewPlace(src.desc);
  bindings.push_back({kArgDiffSrc, dst.buffer});
  context.Emit(std::move(primitive), std::move(bindings),
               gradient.forward.relu ? "and of relu" : "");
  return context.BindResult(dst);
}

}  // namespace tilewire::lowering
