// SPDX-License-Identifier: Apache-2.0
//
// From a network (operations on logical tensors) to a plan (primitives on buffers in chosen
// layouts).
//
// Convolutions and inner products choose their layouts; pooling, eltwise, sum, concat, softmax and
// shuffle keep the layout of their source; a reorder stands only where two neighbours differ. A
// fused sum writes over its addend where that dies, else over a copy. A 2x2 maximum behind a
// convolution is done by the convolution where that is Winograd's. Choices depend on shapes and
// the instruction set only. Thread-safe.
#ifndef ENGINE_LOWERING_LOWERING_H_
#define ENGINE_LOWERING_LOWERING_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/graph/network.h"
#include "engine/lowering/plan_builder.h"
#include "engine/runtime/plan.h"

namespace tilewire::runtime {

// The message names the operation.
//   kUnimplemented      a combination that no primitive takes
//   kInvalidArgument    shapes that do not fit each other
//   kResourceExhausted  memory, or an arena larger than context.max_arena_bytes
absl::StatusOr<std::shared_ptr<const Plan>> Lower(const graph::Network& network,
                                                  const LoweringContext& context);

}  // namespace tilewire::runtime

#endif  // ENGINE_LOWERING_LOWERING_H_
