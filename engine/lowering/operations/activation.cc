// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

absl::Status LowerActivation(const network::Activation& activation, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  return context.EmitUnaryInPlace(
      context.Create(EltwiseDesc{.op = activation.op, .src = src.desc, .dst = src.desc}), src);
}

}  // namespace tilewire::lowering
