// SPDX-License-Identifier: Apache-2.0
//
// The padded tail is computed with the rest and zeroed after it: a broadcast number, a quotient of
// zeros or a post-op need not leave zeros there.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/elementwise_emitter.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"

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

// Immutable.
class Rows final : public Primitive {
 public:
  Rows(PrimitiveInfo primitive_info, const BinaryDesc& desc, ElementwisePlan plan,
       std::unique_ptr<const Generator> generator)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        plan_(std::move(plan)),
        generator_(std::move(generator)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    plan_.Run(generator_->entry<ElementwiseGenerator::Function>(),
              args.Get<float>(kArgDst) + desc_.dst.offset0(),
              {args.Get<const float>(kArgSrc) + desc_.src0.offset0(),
               args.Get<const float>(kArgSrc1) + desc_.src1.offset0()},
              team);
    if (desc_.dst.HasPadding()) ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  const BinaryDesc desc_;
  const ElementwisePlan plan_;
  const std::unique_ptr<const Generator> generator_;
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
  return std::make_unique<Rows>(WithCode(InfoOf(request), *generator), desc, std::move(plan),
                                std::move(generator));
}

}  // namespace tilewire::binary
