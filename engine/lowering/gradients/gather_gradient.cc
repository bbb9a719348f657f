// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

absl::Status LowerGatherGradient(const network::GatherGradient& gradient,
                                 OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place dy, context.RowMajor(context.src(0)));
  ABSL_ASSIGN_OR_RETURN(const Place indices, context.RowMajor(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc result, context.RowMajorDesc(context.dst()));
  // The dims of dy may lack the one of an index without dimensions.
  const Dims &src = result.dims(), &of_indices = indices.desc.dims();
  Dims dims(src.begin(), src.begin() + gradient.axis);
  dims.insert(dims.end(), of_indices.begin(), of_indices.end());
  dims.insert(dims.end(), src.begin() + gradient.axis + 1, src.end());
  GatherDesc desc{.axis = gradient.axis, .src = result, .indices = indices.desc};
  desc.prop_kind = PropKind::kBackwardWeights;
  ABSL_ASSIGN_OR_RETURN(desc.dst, runtime::PlainDesc(dims, DataType::kF32,
                                                     /*channels_last=*/false));
  return context.EmitGradient(context.Create(desc),
                              {{kArgDiffDst, dy.buffer}, {kArgSrc1, indices.buffer}},
                              kArgDiffWeights);
}

}  // namespace tilewire::lowering
