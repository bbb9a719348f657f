// SPDX-License-Identifier: Apache-2.0
//
// The padded tail is computed with the rest and zeroed after it: a broadcast number, a quotient of
// zeros or a post-op need not leave zeros there.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/elementwise_emitter.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/element_primitives.h"

namespace tilewire::binary {
namespace {

class Generator final : public ElementwiseGenerator {
 public:
  Generator(absl::string_view name, const ElementwiseConfig& config, BinaryAlgorithm algorithm)
      : ElementwiseGenerator(name, config),
        emitter_(this, config.unit, {algorithm}, {.is_real = true},
                 {.spare = rax,
                  .masks = {spare_mask_, k4},
                  .scratch = {4, 8, 7},
                  .constants = {kConstants[0], kConstants[1]}}) {}

 private:
  void EmitFunction(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others,
                    const Xbyak::Xmm&) override {
    emitter_.Apply(value, others);
  }

  jit::ElementwiseEmitter emitter_;
};

absl::StatusOr<ElementwisePlan> PlanOf(const BinaryDesc& desc, cpu::Isa isa) {
  return ElementwisePlan::Create({&desc.dst, &desc.src0, &desc.src1}, VectorUnit::Of(isa));
}

}  // namespace

absl::StatusOr<BinaryDesc> ResolveRows(const Request<BinaryDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(BinaryDesc resolved, ResolveReference(request));
  ABSL_RETURN_IF_ERROR(PlanOf(resolved, request.facts.isa).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const Request<BinaryDesc>& request) {
  const BinaryDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(ElementwisePlan plan, PlanOf(desc, request.facts.isa));
  ABSL_ASSIGN_OR_RETURN(
      auto generator,
      jit::Compile<Generator>(request.facts.name, plan.Config(request.attributes.post_ops),
                              desc.algorithm));
  return MakeElementwisePrimitive(InfoOf(request), /*stay_zero=*/false, std::move(plan),
                                  std::move(generator));
}

}  // namespace tilewire::binary
