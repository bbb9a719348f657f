// SPDX-License-Identifier: Apache-2.0
//
// Places buffers with known lifetimes in one arena, such that buffers that are needed at the same
// time do not overlap. Places the largest buffer first, and each at the start of the smallest gap
// that fits among those placed before it: greedy by size (Pisarchyk and Lee, "Efficient Memory
// Management for Deep Neural Net Inference", arXiv 2001.03288). Deterministic. Thread-safe.
#ifndef ENGINE_LOWERING_PLAN_MEMORY_PLAN_H_
#define ENGINE_LOWERING_PLAN_MEMORY_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/runtime/plan.h"

namespace tilewire::lowering {

// Fills the offsets (multiples of 64) and returns the size of the arena in bytes. A part of another
// buffer is placed inside that one, and keeps it alive.
//   kResourceExhausted  the arena would exceed `max_bytes`
absl::StatusOr<int64_t> PlaceBuffers(absl::Span<runtime::PlanBuffer> buffers, int64_t max_bytes);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_MEMORY_PLAN_H_
