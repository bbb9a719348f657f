// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

absl::Status LowerActivation(const network::Activation& activation, OperationContext& context) {
  if (!context.plan().IsUnplaced(context.dst())) {  // computed with the convolution before it
    context.ConsumeSources();
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  return context.EmitUnaryInPlace(
      context.Create(EltwiseDesc{.op = activation.op, .src = src.desc, .dst = src.desc}), src);
}

}  // namespace tilewire::lowering
