// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/max_window_step.h"

namespace tilewire::lowering {

// In row-major order, in which the indices of maxima count.
absl::Status LowerMaxWindow(const graph::MaxWindow& window, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.RowMajor(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(src.desc));
  ABSL_ASSIGN_OR_RETURN(auto step, runtime::CreateMaxWindowStep(window, src.desc, dst));
  return context.EmitUnary(std::move(step), src);
}

}  // namespace tilewire::lowering
