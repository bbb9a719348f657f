// SPDX-License-Identifier: Apache-2.0
//
// The common parts of a convolution and a deconvolution whose weights are computed or are
// parameters: the layout in which a parameter stays, weights in the layout of a primitive, and a
// function after the sums. Thread-compatible.
#ifndef ENGINE_LOWERING_WEIGHTED_COMPUTED_WEIGHTS_H_
#define ENGINE_LOWERING_WEIGHTED_COMPUTED_WEIGHTS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/lowering/plan/operation_context.h"
#include "engine/primitives/convolution/convolution.h"

namespace tilewire::lowering {

// A parameter of one group that nothing has read settles in the layout in which its gradient is
// computed: direct rows read that one too, others a copy that is packed in every run. `desc` is the
// convolution whose gradient that is.
absl::Status SettleParameter(ConvolutionDesc desc, ValueId weights, OperationContext& context);

// Row-major, with a dimension of groups if there are several.
absl::StatusOr<MemoryDesc> PlainWeights(ValueId weights, int64_t groups,
                                        const OperationContext& context);

// The weights as the gradient of a convolution's src reads them: a parameter at home, others as
// PlainWeights(). The primitive packs them again in every run, because an update changes them.
absl::StatusOr<Place> WeightsAtHome(ValueId weights, int64_t groups, OperationContext& context);

// How such a gradient is computed.
ConvolutionAlgorithm AlgorithmOfGradient(const OperationContext& context);

// The weights, seen with the dims of `packed`, in that layout.
absl::StatusOr<Place> PackInRun(ValueId weights, const MemoryDesc& packed,
                                OperationContext& context);

// The function that alone reads the result; null if something else does.
const network::Operation* ActivationOf(const OperationContext& context);

// With the function as a post-op if the primitive takes it; else `activation` becomes null.
absl::StatusOr<std::shared_ptr<const Primitive>> CreateWithActivation(
    const OpDesc& desc, const network::Operation** activation, OperationContext& context);

// The step of a primitive that reads all sources, the first one from `src` and the weights from
// `weights`. The result is that of `activation`, too, if it is not null.
absl::Status EmitComputed(std::shared_ptr<const Primitive> primitive, const Place& src,
                          const Place& weights, const network::Operation* activation,
                          OperationContext& context);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_WEIGHTED_COMPUTED_WEIGHTS_H_
