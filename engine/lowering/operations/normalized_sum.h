// SPDX-License-Identifier: Apache-2.0
//
// A sum and the layer normalization of it as one step, which passes over the sum once.
#ifndef ENGINE_LOWERING_OPERATIONS_NORMALIZED_SUM_H_
#define ENGINE_LOWERING_OPERATIONS_NORMALIZED_SUM_H_

#include <vector>

#include "absl/status/statusor.h"
#include "engine/lowering/plan/operation_context.h"

namespace tilewire::lowering {

// Lowers a sum of `sources`, where they are, together with the first layer normalization that reads
// it, directly or as rows; that one's result is then bound before its turn comes. Returns false,
// and does nothing, where there is none, or where the sources are not two in row-major order.
absl::StatusOr<bool> LowerNormalizedSum(const std::vector<Place>& sources,
                                        OperationContext& context);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_OPERATIONS_NORMALIZED_SUM_H_
