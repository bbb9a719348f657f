// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/weighted/convolution_request.h"

#include "engine/base/status_macros.h"
#include "engine/lowering/weighted/group_merging.h"
#include "engine/lowering/weighted/weighted_operation.h"

namespace tilewire::lowering {

absl::StatusOr<ConvolutionDesc> ConvolutionDescOf(const network::Convolution& convolution,
                                                  const MemoryDesc& src, const MemoryDesc& dst,
                                                  const std::vector<float>& bias,
                                                  const LoweringContext& context) {
  ConvolutionDesc desc{.algorithm = convolution.sums_integers ? ConvolutionAlgorithm::kDirect
                                                              : context.convolution_algorithm,
                       .src = src,
                       .dst = dst,
                       .strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  const Dims weights = GroupedWeightsDims(convolution, context.precision, context.options.max_isa);
  ABSL_ASSIGN_OR_RETURN(
      desc.weights, MemoryDesc::CreateAny(weights, WeightedOperation(convolution).WeightsType()));
  ABSL_ASSIGN_OR_RETURN(desc.bias, BiasDesc(bias));
  return desc;
}

Precision PrecisionOf(const network::Convolution& convolution, const ConvolutionDesc& desc,
                      const LoweringContext& context) {
  constexpr int64_t kFewestChannels = 16, kMostColours = 4;
  const bool has_groups = desc.weights.rank() > desc.src.rank();
  const int64_t channels = desc.weights.dim(has_groups ? 2 : 1);
  const bool is_first_layer = !has_groups && channels <= kMostColours;
  const bool is_narrow = channels < kFewestChannels && !is_first_layer;
  const bool is_exact = is_narrow || convolution.sums_integers || convolution.src_quantization;
  return is_exact ? Precision::kExact : context.precision;
}

const Dims& ComputedDims(const network::Convolution& convolution, const Dims& dst) {
  return convolution.pooling ? convolution.pooling->src : dst;
}

}  // namespace tilewire::lowering
