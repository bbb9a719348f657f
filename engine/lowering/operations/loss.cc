// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

LossDesc DescOf(const network::Loss& loss) {
  return {.algorithm = loss.function,
          .mean = loss.mean,
          .factor = loss.factor,
          .delta = loss.delta,
          .label_smoothing = loss.label_smoothing,
          .ignores = loss.ignore_index.has_value(),
          .ignore_index = loss.ignore_index.value_or(0),
          .class_weights = loss.class_weights};
}

}  // namespace

// The classes of a position lie together, and so do the elements of an image.
absl::Status LowerLoss(const network::Loss& loss, OperationContext& context) {
  LossDesc desc = DescOf(loss);
  const bool has_classes = loss.function == LossFunction::kSoftmaxCrossEntropy;
  ABSL_ASSIGN_OR_RETURN(desc.src, runtime::PlainDesc(context.src_value(0).dims, DataType::kF32,
                                                     /*channels_last=*/has_classes));
  ABSL_ASSIGN_OR_RETURN(desc.targets, runtime::PlainDesc(context.src_value(1).dims, DataType::kF32,
                                                         /*channels_last=*/has_classes));
  if (context.src_value(1).type != DataType::kF32) {
    ABSL_ASSIGN_OR_RETURN(desc.targets, context.RowMajorDesc(context.src(1)));
  }
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.RowMajorDesc(context.dst()));
  if (loss.gives_gradient) desc.diff_src = desc.src;
  ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(0), desc.src));
  ABSL_ASSIGN_OR_RETURN(const Place targets, context.InLayout(context.src(1), desc.targets));
  Bindings bindings = {{kArgSrc, src.buffer}, {kArgSrc1, targets.buffer}};
  if (loss.gives_gradient) {
    const Place gradient = context.plan().NewPlace(desc.diff_src);
    bindings.push_back({kArgDiffSrc, gradient.buffer});
    context.plan().Bind(context.more_dst(0), gradient);
  }
  return context.EmitTo(desc.dst, context.Create(desc), std::move(bindings));
}

}  // namespace tilewire::lowering
