// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

absl::Status LowerShuffle(const network::Shuffle& shuffle, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  return context.EmitUnary(context.Create(ShuffleDesc{.src = src.desc,
                                                      .dst = src.desc,
                                                      .axis = shuffle.axis,
                                                      .group_size = shuffle.group_size}),
                           src);
}

}  // namespace tilewire::lowering
