// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/weighted/convolution_request.h"

#include <algorithm>
#include <numeric>

#include "engine/base/status_macros.h"
#include "engine/cpu/isa.h"
#include "engine/lowering/weighted/weighted_operation.h"

namespace tilewire::lowering {
namespace {

// How many neighbouring groups are computed as one, with zeros as the weights between channels of
// different groups (runtime/packed_weights.cc writes them): groups narrower than a block of
// channels, for products of bf16 on matrix tiles (AMX), which are many times faster than vectors
// but multiply whole blocks only. An infinite activation therefore becomes NaN in the results of
// its neighbours. Elsewhere the lanes of a vector are of several groups without that
// (primitives/convolution/direct/grouped_generator.h). The count is the fewest that fill whole
// blocks; 1 where products with zeros would cost more than copying, and for integers, which have
// other blocks of channels.
int64_t NeighboursOf(const network::Convolution& convolution, Precision precision,
                     cpu::Isa max_isa) {
  constexpr int64_t kLanes = 16, kMostBlocks = 3;
  const bool has_tiles = (max_isa & cpu::BestIsa()).Includes(cpu::Isa::kAmx);
  const int64_t inputs = convolution.weights.dims[1];
  const int64_t outputs = convolution.weights.dims[0] / convolution.groups;
  const bool is_depthwise = inputs == 1 && outputs == 1;
  if (precision != Precision::kBf16 || !has_tiles) return 1;
  if (is_depthwise || convolution.src_quantization || inputs < 1 || outputs < 1) return 1;
  const int64_t count =
      std::lcm(kLanes / std::gcd(kLanes, inputs), kLanes / std::gcd(kLanes, outputs));
  const bool is_cheap = count * std::max(inputs, outputs) <= kMostBlocks * kLanes;
  return is_cheap && convolution.groups % count == 0 ? count : 1;
}

// The dims of the weights [O, I/g, k...] as the primitive counts them: the same for one group,
// otherwise [g', O/g', I/g', k...] with g' merged groups.
Dims GroupedWeightsDims(const network::Convolution& convolution, Precision precision,
                        cpu::Isa max_isa) {
  Dims dims = convolution.weights.dims;
  if (convolution.groups == 1 || dims.size() < 2) return dims;
  const int64_t merged = NeighboursOf(convolution, precision, max_isa);
  const int64_t groups = convolution.groups / merged;
  dims[0] /= groups;
  dims[1] *= merged;
  dims.insert(dims.begin(), groups);
  return dims;
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ConvolutionDescOf(const network::Convolution& convolution,
                                                  const MemoryDesc& src, const MemoryDesc& dst,
                                                  const std::vector<float>& bias,
                                                  Precision permitted,
                                                  const LoweringContext& context) {
  ConvolutionDesc desc{.algorithm = convolution.sums_integers ? ConvolutionAlgorithm::kDirect
                                                              : context.convolution_algorithm,
                       .src = src,
                       .dst = dst,
                       .strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = convolution.padding_left,
                       .padding_right = convolution.padding_right};
  const Dims weights = GroupedWeightsDims(convolution, permitted, context.options.max_isa);
  ABSL_ASSIGN_OR_RETURN(desc.weights,
                        WeightsDesc(WeightedOperation(convolution), weights, context));
  ABSL_ASSIGN_OR_RETURN(desc.bias, BiasDesc(bias));
  return desc;
}

Precision PrecisionOf(const network::Convolution& convolution, const ConvolutionDesc& desc,
                      Precision permitted) {
  constexpr int64_t kFewestChannels = 16, kMostColours = 4;
  const bool has_groups = desc.weights.rank() > desc.src.rank();
  const int64_t channels = desc.weights.dim(has_groups ? 2 : 1);
  const bool is_first_layer = !has_groups && channels <= kMostColours;
  const bool is_narrow = channels < kFewestChannels && !is_first_layer;
  const bool is_exact = is_narrow || convolution.sums_integers || convolution.src_quantization;
  return is_exact ? Precision::kExact : permitted;
}

const Dims& ComputedDims(const network::Convolution& convolution, const Dims& dst) {
  return convolution.pooling ? convolution.pooling->src : dst;
}

}  // namespace tilewire::lowering
