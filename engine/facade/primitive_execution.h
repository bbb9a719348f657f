// SPDX-License-Identifier: Apache-2.0
//
// Executes a primitive on tensors in the caller's layouts: reorders inputs to the layouts that the
// primitive chose, and outputs to those that the caller wants. Bytes of a plain, dense source move
// once (StreamingReorder); those of other sources are gathered first.
#ifndef ENGINE_FACADE_PRIMITIVE_EXECUTION_H_
#define ENGINE_FACADE_PRIMITIVE_EXECUTION_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/cache/primitive_cache.h"
#include "engine/cpu/isa.h"
#include "engine/primitive_engine.h"
#include "engine/threading/arena.h"
#include "engine/threading/scratchpad.h"

namespace tilewire {

// Borrowed by an execution; all of it outlives the call.
struct ExecutionResources {
  PrimitiveCache* cache;        // for reorders
  ScratchpadPool* scratchpads;  // for scratchpads and reordered inputs
  threading::Team team;
  cpu::Isa max_isa = cpu::BestIsa();
  std::function<absl::Status()> interrupted;  // asked between reorders and the primitive
  int64_t max_output_bytes = std::numeric_limits<int64_t>::max();
  // As in RunOptions.
  std::function<absl::Status(int64_t bytes)> reserve;
  std::function<absl::StatusOr<AlignedBuffer>(size_t bytes)> allocate_output;
};

// The contract is PrimitiveEngine::ExecutePrimitive's. An input is given exactly once, and so is an
// output; an output whose descriptor is zero or `any` gets the primitive's own. Where a destination
// is larger than its elements (strides with gaps), the gaps are zero. Thread-safe for a primitive
// in user scratchpad mode.
//   kInvalidArgument    an argument that is missing, unknown, given twice, or of another shape,
//                       type or size
//   kUnimplemented      a reorder that no implementation takes
//   kResourceExhausted  memory; outputs of more than max_output_bytes
//   what `interrupted` and `reserve` returned
absl::StatusOr<PrimitiveTimes> ExecuteWithReorders(const Primitive& primitive,
                                                   absl::Span<const PrimitiveInput> inputs,
                                                   absl::Span<PrimitiveOutput> outputs,
                                                   const ExecutionResources& resources);

}  // namespace tilewire

#endif  // ENGINE_FACADE_PRIMITIVE_EXECUTION_H_
