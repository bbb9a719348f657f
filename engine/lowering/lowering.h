// SPDX-License-Identifier: Apache-2.0
//
// From a network (operations on logical tensors) to a plan (primitives on buffers in chosen
// layouts).
//
// Convolutions and inner products choose their layouts; pooling, eltwise, sum, concat and shuffle
// keep the layout of their source; a reorder is inserted only where two neighbours differ. A fused
// sum writes over its addend where that is dead, otherwise over a copy. A 2x2 maximum after a
// convolution is computed by the convolution itself where that is Winograd's. Choices depend on
// shapes and the instruction set only. Thread-safe.
#ifndef ENGINE_LOWERING_LOWERING_H_
#define ENGINE_LOWERING_LOWERING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/lowering/plan/plan_builder.h"
#include "engine/network/network.h"
#include "engine/runtime/plan.h"

namespace tilewire::lowering {

// The message names the operation.
//   kUnimplemented      a combination that no primitive takes
//   kInvalidArgument    shapes that do not fit each other
//   kInternal           an operation that breaks its contract (network/network_check.h)
//   kResourceExhausted  memory, or an arena larger than context.max_arena_bytes
//   what context.between_operations returned
absl::StatusOr<std::shared_ptr<const Plan>> LowerNetwork(const network::Network& network,
                                                         const LoweringContext& context);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_LOWERING_H_
