// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {

absl::Status LowerIdentity(NodeContext& context) { return context.SetOutput(context.input(0)); }

// At inference nothing is dropped. The optional mask stays undefined.
absl::Status LowerDropout(NodeContext& context) {
  if (context.Has(2)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr training, context.Ints(2));
    if (training->count() != 1 || training->ints[0] != 0)
      return context.node.Unimplemented("training_mode");
  }
  return context.SetOutput(context.input(0));
}

}  // namespace tilewire::graph
