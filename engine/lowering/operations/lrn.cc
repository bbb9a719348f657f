// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

absl::Status LowerLrn(const network::Lrn& lrn, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  return context.EmitUnary(context.Create(LrnDesc{.src = src.desc,
                                                  .dst = src.desc,
                                                  .local_size = lrn.size,
                                                  .alpha = lrn.alpha,
                                                  .beta = lrn.beta,
                                                  .k = lrn.k}),
                           src);
}

}  // namespace tilewire::lowering
