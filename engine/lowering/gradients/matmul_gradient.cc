// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

// In the layouts of forward.
absl::Status LowerMatmulGradient(const network::MatmulGradient& gradient,
                                 OperationContext& context) {
  const size_t rank = context.src_value().dims.size();
  ABSL_ASSIGN_OR_RETURN(const Place dy, context.RowMajor(context.src(0)));
  ABSL_ASSIGN_OR_RETURN(const Place other, context.StridedMatrixOr(context.src(1), rank));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc result, context.RowMajorDesc(context.dst()));
  MatmulDesc desc{.src = result, .weights = other.desc, .dst = dy.desc};
  desc.prop_kind = PropKind::kBackwardData;
  if (gradient.by_second) {
    desc.prop_kind = PropKind::kBackwardWeights;
    std::swap(desc.src, desc.weights);
  }
  return context.EmitGradient(
      context.Create(desc),
      {{kArgDiffDst, dy.buffer}, {gradient.by_second ? kArgSrc : kArgWeights, other.buffer}},
      gradient.by_second ? kArgDiffWeights : kArgDiffSrc);
}

}  // namespace tilewire::lowering
