// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/top_k_step.h"

namespace tilewire::lowering {

// Keeps the layout of its source.
absl::Status LowerTopK(const graph::TopK& top, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(src.desc));
  ABSL_ASSIGN_OR_RETURN(auto step, runtime::CreateTopKStep(top, src.desc, dst));
  return context.EmitUnary(std::move(step), src);
}

}  // namespace tilewire::lowering
