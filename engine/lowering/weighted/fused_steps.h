// SPDX-License-Identifier: Apache-2.0
//
// The steps that passes fused into a convolution or inner product (network::FusedStep):
// activations of the result, and sums with another value. The primitive does as many of them as it
// can as post-ops; the others become steps of their own, in place over its result.
// Thread-compatible.
#ifndef ENGINE_LOWERING_WEIGHTED_FUSED_STEPS_H_
#define ENGINE_LOWERING_WEIGHTED_FUSED_STEPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/lowering/plan/operation_context.h"

namespace tilewire::lowering {

// How fused steps are carried out: the first `taken` of them as post-ops of the primitive.
struct Fusion {
  Attributes attributes;               // a max pooling among them is a FusedPooling
  ValueId addend = network::kNoValue;  // of the sum among the post-ops
  size_t taken = 0;
  std::vector<float> bias;  // what the primitive adds before its post-ops; empty for none
};

// As many steps as the primitive's chain of post-ops takes. A sum post-op adds what dst holds, and
// there is one dst, so that a second sum ends the chain.
Fusion PlanPostOps(absl::Span<const network::FusedStep> steps, const std::vector<float>& bias);

// Where a primitive that reads the buffer `src` writes its result of `desc`. With an addend, the
// place holds the addend's elements: the addend's own place where it is dead and is not `src`,
// otherwise a copy of it. Consumes the addend.
absl::StatusOr<Place> DestinationHolding(ValueId addend, const MemoryDesc& desc, int src,
                                         OperationContext& context);

// Appends a step for each of `steps`, in place over `place`. Consumes their addends.
absl::Status EmitSteps(absl::Span<const network::FusedStep> steps, const Place& place,
                       OperationContext& context);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_WEIGHTED_FUSED_STEPS_H_
