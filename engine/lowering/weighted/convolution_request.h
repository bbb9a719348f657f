// SPDX-License-Identifier: Apache-2.0
//
// The request of a convolution to its primitive, but for the types in which its tensors are kept.
// Pure functions; thread-safe.
#ifndef ENGINE_LOWERING_WEIGHTED_CONVOLUTION_REQUEST_H_
#define ENGINE_LOWERING_WEIGHTED_CONVOLUTION_REQUEST_H_

#include "absl/status/statusor.h"
#include "engine/lowering/plan/plan_builder.h"
#include "engine/lowering/weighted/fused_steps.h"
#include "engine/network/network.h"

namespace tilewire::lowering {

// Tensors are `any`; `dst` has the dims of the result, which a fused pooling reads. `permitted` is
// the precision that the context gives the operation.
absl::StatusOr<ConvolutionDesc> ConvolutionDescOf(const network::Convolution& convolution,
                                                  const MemoryDesc& src, const MemoryDesc& dst,
                                                  const std::vector<float>& bias,
                                                  Precision permitted,
                                                  const LoweringContext& context);

// The precision that the attributes permit: fewer channels than a vector's are computed in f32
// whatever is permitted, but for those of a first layer, and integers that are summed as floats
// stay integers.
Precision PrecisionOf(const network::Convolution& convolution, const ConvolutionDesc& desc,
                      Precision permitted);

// The dims that the convolution itself computes: its result, or what its pooling reads.
const Dims& ComputedDims(const network::Convolution& convolution, const Dims& dst);

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_WEIGHTED_CONVOLUTION_REQUEST_H_
