// SPDX-License-Identifier: Apache-2.0
//
// The gradient of a sum or a mean is that of its result for every element, times a number. src is
// not read, and what pads diff_src is computed with the rest and zeroed after it.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/reduction/implementations.h"

namespace tilewire::reduction {
namespace {

class ShareGenerator final : public ElementwiseGenerator {
 public:
  ShareGenerator(absl::string_view name, const ElementwiseConfig& config, float share)
      : ElementwiseGenerator(name, config), share_(share) {}

 private:
  void EmitConstants() override { unit().Broadcast(this, Vector(kConstants[0]), share_, rax); }
  void EmitFunction(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm>,
                    const Xbyak::Xmm&) override {
    if (share_ != 1) vmulps(value, value, Vector(kConstants[0]));
  }

  const float share_;
};

struct BroadcastGradient {
  void Run(const DrivenRun& run) const {
    plan.Run(code->entry<ElementwiseGenerator::Function>(), run.First<float>(kArgDiffSrc),
             {run.First<const float>(kArgDiffDst)}, run.team);
    ZeroPadding(run.primitive.Desc(kArgDiffSrc), run.args.Find(kArgDiffSrc));
  }
  size_t code_bytes() const { return code->code_bytes(); }

  ElementwisePlan plan;
  std::unique_ptr<const ShareGenerator> code;
};

absl::StatusOr<ElementwisePlan> BroadcastPlanOf(const Request<ReductionDesc>& request) {
  return ElementwisePlan::Create({&request.desc.diff_src, &request.desc.diff_dst},
                                 VectorUnit::Of(request.facts.isa));
}

}  // namespace

absl::StatusOr<ReductionDesc> ResolveBroadcastBackward(const Request<ReductionDesc>& request) {
  const ReductionAlgorithm algorithm = request.desc.algorithm;
  if (algorithm != ReductionAlgorithm::kSum && algorithm != ReductionAlgorithm::kMean)
    return Unimplemented("is for sum and mean, not ", AlgorithmName(algorithm));
  ABSL_ASSIGN_OR_RETURN(ReductionDesc resolved, ResolveReferenceBackward(request));
  ABSL_RETURN_IF_ERROR(BroadcastPlanOf(request.With(resolved)).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBroadcastBackward(
    const Request<ReductionDesc>& request) {
  const ReductionDesc& desc = request.desc;
  const bool is_mean = desc.algorithm == ReductionAlgorithm::kMean;
  const double share = is_mean ? 1 / static_cast<double>(ReducedCount(desc)) : 1;
  ABSL_ASSIGN_OR_RETURN(ElementwisePlan plan, BroadcastPlanOf(request));
  ABSL_ASSIGN_OR_RETURN(auto code,
                        jit::Compile<ShareGenerator>(request.facts.name, plan.Config(PostOps()),
                                                     static_cast<float>(share)));
  return MakeDriven(BackwardInfoOf(request), BroadcastGradient{std::move(plan), std::move(code)});
}

}  // namespace tilewire::reduction
