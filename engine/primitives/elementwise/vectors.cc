// SPDX-License-Identifier: Apache-2.0
//
// The padded tail is computed with the rest and zeroed after it: zeros may be equal.
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/jit/elementwise_emitter.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/element_primitives.h"
#include "engine/primitives/elementwise/implementations.h"
#include "engine/primitives/elementwise/number_functions.h"

namespace tilewire::elementwise {
namespace {

jit::LaneKind LanesOf(const ElementwiseDesc& desc) {
  int bytes = ElementLanes::LaneBytes(desc.dst.data_type());
  for (const MemoryDesc& src : desc.srcs)
    bytes = std::max(bytes, ElementLanes::LaneBytes(src.data_type()));
  const DataType type = NumberTypeOf(desc);
  const bool is_narrow = IsIntegerType(type) && SizeOf(type) < 4;
  return {bytes, type == DataType::kF32, ElementLanes::IsSigned(type), is_narrow,
          TruthTypeOf(desc) != DataType::kF32};
}

class VectorsGenerator final : public ElementwiseGenerator {
 public:
  VectorsGenerator(absl::string_view name, const ElementwiseConfig& config,
                   const ElementwiseDesc& desc)
      : ElementwiseGenerator(name, config),
        emitter_(this, config.unit, desc.function, LanesOf(desc),
                 {.spare = rax,
                  .masks = {spare_mask_, k4},
                  .scratch = {4, 8, 6},
                  .constants = {kConstants[0], kConstants[1]}}) {}

 private:
  void EmitConstants() override { emitter_.EmitConstants(); }
  void EmitTables() override { emitter_.EmitTable(); }
  void EmitFunction(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others,
                    const Xbyak::Xmm&) override {
    emitter_.Apply(value, others);
  }

  jit::ElementwiseEmitter emitter_;
};

absl::StatusOr<ElementwisePlan> PlanOf(const ElementwiseDesc& desc, cpu::Isa isa) {
  std::vector<const MemoryDesc*> tensors = {&desc.dst};
  for (const MemoryDesc& src : desc.srcs) tensors.push_back(&src);
  return ElementwisePlan::Create(tensors, VectorUnit::Of(isa));
}

}  // namespace

absl::StatusOr<ElementwiseDesc> ResolveVectors(const Request<ElementwiseDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ElementwiseDesc resolved, ResolveReference(request));
  const DataType type = NumberTypeOf(request.desc);
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  if (type == DataType::kF64 ||
      !jit::ElementwiseEmitter::Has(unit, request.desc.function.function, LanesOf(resolved))) {
    return Unimplemented("has no vectors for the function of ", DataTypeName(type));
  }
  ABSL_RETURN_IF_ERROR(PlanOf(resolved, request.facts.isa).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateVectors(const Request<ElementwiseDesc>& request) {
  const ElementwiseDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(ElementwisePlan plan, PlanOf(desc, request.facts.isa));
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<VectorsGenerator>(request.facts.name, plan.Config({}), desc));
  return MakeElementwisePrimitive(InfoOf(request), /*stay_zero=*/false, std::move(plan),
                                  std::move(generator));
}

}  // namespace tilewire::elementwise
