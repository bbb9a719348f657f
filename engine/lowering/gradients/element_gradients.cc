// SPDX-License-Identifier: Apache-2.0
//
// Gradients that are computed from dy and one tensor of its shape: in the layout of that one.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

absl::Status LowerActivationGradient(const network::ActivationGradient& gradient,
                                     OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place saved, context.DenseHome(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(const Place dy, context.InLayout(context.src(0), saved.desc));
  EltwiseDesc desc{.prop_kind = PropKind::kBackwardData,
                   .op = gradient.op,
                   .diff_src = saved.desc,
                   .diff_dst = saved.desc};
  (gradient.from_result ? desc.dst : desc.src) = saved.desc;
  return context.EmitGradientInPlace(
      context.Create(desc),
      {{kArgDiffDst, dy.buffer}, {gradient.from_result ? kArgDst : kArgSrc, saved.buffer}});
}

absl::Status LowerSoftmaxGradient(const network::SoftmaxGradient& gradient,
                                  OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                        LayoutForSoftmax(context.dst_value(), gradient.axis));
  ABSL_ASSIGN_OR_RETURN(const Place dy, context.InLayout(context.src(0), desc));
  ABSL_ASSIGN_OR_RETURN(const Place result, context.InLayout(context.src(1), desc));
  return context.EmitGradient(context.Create(SoftmaxDesc{.prop_kind = PropKind::kBackwardData,
                                                         .dst = desc,
                                                         .axis = gradient.axis,
                                                         .diff_src = desc,
                                                         .diff_dst = desc}),
                              {{kArgDiffDst, dy.buffer}, {kArgDst, result.buffer}});
}

absl::Status LowerLrnGradient(const network::LrnGradient& gradient, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(const Place dy, context.InLayout(context.src(0), src.desc));
  LrnDesc desc = RequestOf(gradient.forward);
  desc.prop_kind = PropKind::kBackwardData;
  desc.src = desc.diff_src = desc.diff_dst = src.desc;
  return context.EmitGradient(context.Create(desc),
                              {{kArgDiffDst, dy.buffer}, {kArgSrc, src.buffer}});
}

absl::Status LowerReduceGradient(const network::ReduceGradient& gradient,
                                 OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src(1)));
  ReductionDesc desc = RequestOf(gradient.function);
  desc.prop_kind = PropKind::kBackwardData;
  desc.src = desc.diff_src = src.desc;
  ABSL_ASSIGN_OR_RETURN(desc.dst, runtime::LayoutLike(src.desc, context.src_value().dims));
  desc.diff_dst = desc.dst;
  ABSL_ASSIGN_OR_RETURN(const Place dy, context.InLayout(context.src(0), desc.dst));
  return context.EmitGradient(context.Create(desc),
                              {{kArgDiffDst, dy.buffer}, {kArgSrc, src.buffer}});
}

}  // namespace tilewire::lowering
