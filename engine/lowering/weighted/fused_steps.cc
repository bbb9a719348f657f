// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/weighted/fused_steps.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

using network::FusedStep;

namespace {

PostOp PostOpOf(const FusedStep& step) {
  switch (step.kind) {
    case FusedStep::Kind::kActivation:
      return EltwisePostOp{step.activation};
    case FusedStep::Kind::kPRelu:
      return PReluPostOp{step.slopes};
    case FusedStep::Kind::kSum:
      break;
  }
  return SumPostOp{};
}

}  // namespace

Fusion PlanPostOps(absl::Span<const FusedStep> steps, const std::vector<float>& bias) {
  Fusion fusion;
  fusion.bias = bias;
  for (const FusedStep& step : steps) {
    const bool is_sum = step.kind == FusedStep::Kind::kSum;
    if (is_sum && fusion.addend != network::kNoValue) break;
    if (!fusion.attributes.post_ops.Append(PostOpOf(step)).ok()) break;
    if (is_sum) fusion.addend = step.addend;
    ++fusion.taken;
  }
  return fusion;
}

absl::StatusOr<Place> DestinationHolding(ValueId addend, const MemoryDesc& desc, int src,
                                         OperationContext& context) {
  PlanBuilder& plan = context.plan();
  if (addend == network::kNoValue) return plan.NewPlace(desc);
  ABSL_ASSIGN_OR_RETURN(const Place held, context.HomeOr(addend, desc));
  plan.Consume(addend);
  if (runtime::SameMemory(held.desc, desc) && plan.MayOverwrite(held) &&
      !plan.MayOverlap(held.buffer, src)) {
    return Place{held.buffer, desc};
  }
  return context.Copy(held, desc, "copies the addend of a fused sum");
}

absl::Status EmitSteps(absl::Span<const FusedStep> steps, const Place& place,
                       OperationContext& context) {
  for (const FusedStep& step : steps) {
    if (step.kind == FusedStep::Kind::kActivation) {
      ABSL_ASSIGN_OR_RETURN(
          auto eltwise,
          context.Create(EltwiseDesc{.op = step.activation, .src = place.desc, .dst = place.desc}));
      context.Emit(std::move(eltwise), {{kArgSrc, place.buffer}, {kArgDst, place.buffer}});
      continue;
    }
    if (step.kind == FusedStep::Kind::kPRelu)
      return Internal("a prelu that no post-op of its convolution computes");
    ABSL_ASSIGN_OR_RETURN(const Place addend, context.InLayout(step.addend, place.desc));
    context.plan().Consume(step.addend);
    ABSL_ASSIGN_OR_RETURN(
        auto sum, context.Create(SumDesc{
                      .scales = {1, 1}, .srcs = {place.desc, place.desc}, .dst = place.desc}));
    context.Emit(std::move(sum), {{kArgMultipleSrc, place.buffer},
                                  {kArgMultipleSrc + 1, addend.buffer},
                                  {kArgDst, place.buffer}});
  }
  return absl::OkStatus();
}

}  // namespace tilewire::lowering
