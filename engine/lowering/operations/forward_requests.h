// SPDX-License-Identifier: Apache-2.0
//
// Parts of requests to primitives that an operation and its gradient share; tensors are left out
// of descriptors. Each is defined beside its operation. Thread-compatible.
#ifndef ENGINE_LOWERING_OPERATIONS_FORWARD_REQUESTS_H_
#define ENGINE_LOWERING_OPERATIONS_FORWARD_REQUESTS_H_

#include "absl/status/statusor.h"
#include "engine/lowering/plan/operation_context.h"
#include "engine/network/network.h"
#include "engine/primitives/primitives.h"

namespace tilewire::lowering {

PoolingDesc RequestOf(const network::Pooling& pooling);
ReductionDesc RequestOf(network::Reduce::Function function);
LrnDesc RequestOf(const network::Lrn& lrn);

// In row-major order, with the axis innermost: the generated code wants the elements that it
// exponentiates and adds up to be neighbours in memory.
absl::StatusOr<MemoryDesc> LayoutForSoftmax(const network::Value& value, int axis);

// The parameters [C] of a normalization as the one tensor [2, C] that its primitive reads.
absl::StatusOr<Place> PackScaleAndShift(ValueId scale, ValueId shift, OperationContext& context);
// Their gradients, which the primitive writes as one tensor `both` [2, C]: a new place for it, in
// which the operation's further results 0 and 1 are.
absl::StatusOr<Place> BindParameterGradients(const MemoryDesc& both, OperationContext& context);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_OPERATIONS_FORWARD_REQUESTS_H_
