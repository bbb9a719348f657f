// SPDX-License-Identifier: Apache-2.0
//
// The common parts of a convolution, a deconvolution and an inner product: weights that are known
// when the model is loaded, a bias, and fused steps after the sums (fused_steps.h).
//
// Lowering one of them takes four decisions, in this order:
//   1. PlanFusion(): which fused steps the primitive does as post-ops. For 8-bit integers this also
//      turns scales and zero points into output scales and a changed bias (integer_fusion.h).
//   2. The descriptor, with `any` wherever the primitive may choose a layout. The implementation
//      that is created for it fixes the layouts of source, weights and result. convolution.cc and
//      inner_product.cc then look whether a primitive for the source as it is does as well, so that
//      the source need not be reordered.
//   3. EmitWeighted(): the source is brought into the primitive's layout. The weights are packed
//      once per layout and are shared by all plans of the model (runtime/packed_weights.h).
//   4. Where the result goes. Without a fused sum, to a new place. A sum post-op adds what the
//      destination holds, so that the result is written over the addend, where that is dead, or
//      over a copy of it. Fused steps that the primitive did not take follow as steps of their own.
//
// Thread-compatible.
#ifndef ENGINE_LOWERING_WEIGHTED_WEIGHTED_OPERATION_H_
#define ENGINE_LOWERING_WEIGHTED_WEIGHTED_OPERATION_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/lowering/plan/operation_context.h"
#include "engine/lowering/weighted/fused_steps.h"

namespace tilewire::lowering {

// The parameters that these operations have; borrowed from one of them.
struct WeightedOperation {
  template <typename Params>
  explicit WeightedOperation(const Params& params)
      : weights(params.weights),
        bias(params.bias),
        fused(params.fused),
        src_quantization(params.src_quantization),
        dst_quantization(params.dst_quantization) {}

  explicit WeightedOperation(const network::Deconvolution& params)
      : WeightedOperation(params.weights, params.bias, params.fused) {}
  explicit WeightedOperation(const network::DynamicConvolution& params)
      : WeightedOperation(params.weights, params.bias, params.fused) {}
  explicit WeightedOperation(const network::DynamicInnerProduct& params)
      : WeightedOperation(params.weights, params.bias, params.fused) {}

  DataType WeightsType() const { return src_quantization ? DataType::kS8 : DataType::kF32; }

  const network::Weights& weights;
  const std::vector<float>& bias;
  const std::vector<network::FusedStep>& fused;
  const std::optional<network::QuantizationParams>& src_quantization;
  const std::optional<network::QuantizationParams>& dst_quantization;

 private:
  WeightedOperation(const network::Weights& its_weights, const std::vector<float>& its_bias,
                    const std::vector<network::FusedStep>& its_steps)
      : weights(its_weights),
        bias(its_bias),
        fused(its_steps),
        src_quantization(kNone),
        dst_quantization(kNone) {}

  static inline const std::optional<network::QuantizationParams> kNone;
};

//   kUnimplemented  integers with more steps than a primitive takes
absl::StatusOr<Fusion> PlanFusion(const WeightedOperation& operation,
                                  const LoweringContext& context);

// The dims of weights [O, I, k...] as primitives count them: where there are several groups,
// [groups, O/groups, I, k...].
Dims GroupedDims(Dims weights, int64_t groups);

// The descriptor of the weights, `any`, with `dims` as the primitive counts them. Bytes that are so
// small that products of them fit 16 bits are bounded (MemoryExtra) where the CPU gains by it: they
// are looked at, whatever the file says of itself.
//   and the errors of PackedWeights::LargestByte()
absl::StatusOr<MemoryDesc> WeightsDesc(const WeightedOperation& operation, const Dims& dims,
                                       const LoweringContext& context);

// The descriptor of a bias; the zero descriptor where there is none.
absl::StatusOr<MemoryDesc> BiasDesc(const std::vector<float>& bias);

// Appends the step, and one for each fused step that is not a post-op. Consumes the source and the
// addends. Returns where the result is, without binding it.
absl::StatusOr<Place> EmitWeighted(const WeightedOperation& operation, const Fusion& fusion,
                                   std::shared_ptr<const Primitive> primitive,
                                   OperationContext& context);
// The same for a source that is at `src`, in the primitive's layout, and has been consumed; `more`
// are the arguments beside those that every such primitive has.
absl::StatusOr<Place> EmitWeightedFrom(const Place& src, const WeightedOperation& operation,
                                       const Fusion& fusion,
                                       std::shared_ptr<const Primitive> primitive,
                                       OperationContext& context, Bindings more = {});

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_WEIGHTED_WEIGHTED_OPERATION_H_
