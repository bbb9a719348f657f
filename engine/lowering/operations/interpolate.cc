// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

// Keeps the layout of its source, unless the axis is blocked there.
absl::Status LowerInterpolate(const network::Interpolate& interpolate, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(Place src, context.DenseHome(context.src()));
  if (src.desc.BlockSize(interpolate.axis) != 1) {
    ABSL_ASSIGN_OR_RETURN(src, context.RowMajor(context.src()));
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(src.desc));
  return context.EmitUnary(context.Create(InterpolateDesc{.src = src.desc,
                                                          .dst = dst,
                                                          .axis = interpolate.axis,
                                                          .taps = interpolate.taps,
                                                          .indices = interpolate.indices,
                                                          .weights = interpolate.weights}),
                           src);
}

}  // namespace tilewire::lowering
