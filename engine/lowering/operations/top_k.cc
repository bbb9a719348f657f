// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

// Keeps the layout of its source.
absl::Status LowerTopK(const network::TopK& top, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  ABSL_ASSIGN_OR_RETURN(MemoryDesc dst, context.DstLike(src.desc));
  ABSL_ASSIGN_OR_RETURN(dst, dst.WithDataType(context.dst_value().type));
  return context.EmitUnary(context.Create(TopKDesc{.src = src.desc,
                                                   .dst = dst,
                                                   .axis = top.axis,
                                                   .largest = top.largest,
                                                   .indices = top.indices,
                                                   .last_of_equals = top.last_of_equals}),
                           src);
}

}  // namespace tilewire::lowering
