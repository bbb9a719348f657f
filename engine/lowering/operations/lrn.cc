// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"

namespace tilewire::lowering {

LrnDesc RequestOf(const network::Lrn& lrn) {
  return {.local_size = lrn.size, .alpha = lrn.alpha, .beta = lrn.beta, .k = lrn.k};
}

absl::Status LowerLrn(const network::Lrn& lrn, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  LrnDesc desc = RequestOf(lrn);
  desc.src = desc.dst = src.desc;
  return context.EmitUnary(context.Create(desc), src);
}

}  // namespace tilewire::lowering
