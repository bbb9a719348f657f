// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/weighted/weighted_operation.h"

#include <utility>

#include "engine/base/status_macros.h"
#include "engine/cpu/isa.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/products/integer_tile.h"
#include "engine/lowering/weighted/integer_fusion.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

absl::StatusOr<Fusion> PlanFusion(const WeightedOperation& operation,
                                  const LoweringContext& context) {
  if (!operation.src_quantization) return PlanPostOps(operation.fused, operation.bias);
  std::shared_ptr<const AlignedBuffer> sums;
  IntegerTerms terms{.src = *operation.src_quantization,
                     .dst = operation.dst_quantization,
                     .weight_scales = operation.weights.scale,
                     .outputs = operation.weights.dims[0],
                     .bias = operation.bias,
                     .steps = operation.fused};
  if (terms.src.zero_point != 0) {
    ABSL_ASSIGN_OR_RETURN(sums, context.weights->SumOutputs(operation.weights));
    terms.weight_sums = {reinterpret_cast<const float*>(sums->data()),
                         static_cast<size_t>(terms.outputs)};
  }
  ABSL_ASSIGN_OR_RETURN(IntegerFusion integers, PlanIntegerFusion(terms));
  return Fusion{std::move(integers.attributes), integers.addend, operation.fused.size(),
                std::move(integers.bias)};
}

Dims GroupedDims(Dims weights, int64_t groups) {
  if (groups == 1) return weights;
  weights[0] /= groups;
  weights.insert(weights.begin(), groups);
  return weights;
}

absl::StatusOr<MemoryDesc> WeightsDesc(const WeightedOperation& operation, const Dims& dims,
                                       const LoweringContext& context) {
  ABSL_ASSIGN_OR_RETURN(MemoryDesc desc, MemoryDesc::CreateAny(dims, operation.WeightsType()));
  const cpu::Isa isa = context.options.max_isa & cpu::BestIsa();
  const bool gains = isa.Includes(cpu::Isa::kAvx2) && !VectorUnit::Of(isa).has_dot_products();
  if (!gains || desc.data_type() != DataType::kS8) return desc;
  ABSL_ASSIGN_OR_RETURN(const int largest, context.weights->LargestByte(operation.weights));
  if (largest > kPairBound) return desc;
  return desc.WithBound(kPairBound);
}

absl::StatusOr<MemoryDesc> BiasDesc(const std::vector<float>& bias) {
  if (bias.empty()) return MemoryDesc();
  return runtime::PlainDesc({static_cast<int64_t>(bias.size())}, DataType::kF32,
                            /*channels_last=*/false);
}

absl::StatusOr<Place> EmitWeighted(const WeightedOperation& operation, const Fusion& fusion,
                                   std::shared_ptr<const Primitive> primitive,
                                   OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(), primitive->Desc(kArgSrc)));
  context.plan().Consume(context.src());
  return EmitWeightedFrom(src, operation, fusion, std::move(primitive), context);
}

absl::StatusOr<Place> EmitWeightedFrom(const Place& src, const WeightedOperation& operation,
                                       const Fusion& fusion,
                                       std::shared_ptr<const Primitive> primitive,
                                       OperationContext& context, Bindings more) {
  const LoweringContext& settings = context.settings();
  ABSL_ASSIGN_OR_RETURN(const Place dst, DestinationHolding(fusion.addend, primitive->Desc(kArgDst),
                                                            src.buffer, context));
  ABSL_ASSIGN_OR_RETURN(
      auto packed,
      settings.weights->Pack(operation.weights, primitive->Desc(kArgWeights), settings.team));
  if (operation.weights.own) context.plan().CountOwn(*packed);
  Bindings bindings = std::move(more);
  bindings.push_back({kArgSrc, src.buffer});
  bindings.push_back({kArgDst, dst.buffer});
  bindings.push_back(context.plan().Constant(kArgWeights, std::move(packed)));
  if (!fusion.bias.empty()) {
    ABSL_ASSIGN_OR_RETURN(
        auto packed_bias,
        settings.weights->PackBias(fusion.bias, primitive->Desc(kArgBias), operation.weights.own));
    bindings.push_back(context.plan().Constant(kArgBias, std::move(packed_bias)));
  }
  context.Emit(std::move(primitive), std::move(bindings), /*remark=*/"",
               fusion.attributes.post_ops);
  ABSL_RETURN_IF_ERROR(
      EmitSteps(absl::MakeConstSpan(operation.fused).subspan(fusion.taken), dst, context));
  return dst;
}

}  // namespace tilewire::lowering
