// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

absl::Status LowerGather(const network::Gather& gather, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.RowMajor(context.src(0)));
  ABSL_ASSIGN_OR_RETURN(const Place indices, context.RowMajor(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.RowMajorDesc(context.dst()));
  context.plan().Consume(context.src(1));
  return context.EmitUnary(context.Create(GatherDesc{gather.axis, src.desc, indices.desc, dst}),
                           src, {{kArgSrc1, indices.buffer}});
}

}  // namespace tilewire::lowering
