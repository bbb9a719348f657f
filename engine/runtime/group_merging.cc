// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/group_merging.h"

#include <algorithm>
#include <numeric>

#include "engine/base/status_macros.h"

namespace tilewire::runtime {
namespace {

int64_t ChannelsOfBlock(cpu::Isa max_isa) {
  const cpu::Isa isa = max_isa & cpu::BestIsa();
  if (isa.Includes(cpu::Isa::kAvx512)) return 16;
  return isa.Includes(cpu::Isa::kAvx2) ? 8 : 1;
}

// The fewest that fill blocks; 1 where products with zeros would cost more than copying, and for
// integers, whose channels lie in other blocks.
int64_t NeighboursOf(const graph::Convolution& convolution, cpu::Isa max_isa) {
  constexpr int64_t kMostBlocks = 3;
  const int64_t lanes = ChannelsOfBlock(max_isa);
  const int64_t inputs = convolution.weights.dims[1];
  const int64_t outputs = convolution.weights.dims[0] / convolution.groups;
  const bool is_depthwise = inputs == 1 && outputs == 1;
  if (is_depthwise || convolution.src_quantization || inputs < 1 || outputs < 1) return 1;
  const int64_t count = std::lcm(lanes / std::gcd(lanes, inputs), lanes / std::gcd(lanes, outputs));
  const bool is_cheap = count * std::max(inputs, outputs) <= kMostBlocks * lanes;
  return is_cheap && convolution.groups % count == 0 ? count : 1;
}

}  // namespace

Dims GroupedWeightsDims(const graph::Convolution& convolution, cpu::Isa max_isa) {
  Dims dims = convolution.weights.dims;
  if (convolution.groups == 1 || dims.size() < 2) return dims;
  const int64_t merged = NeighboursOf(convolution, max_isa);
  const int64_t groups = convolution.groups / merged;
  dims[0] /= groups;
  dims[1] *= merged;
  dims.insert(dims.begin(), groups);
  return dims;
}

bool MergesGroups(const graph::Weights& weights, const Dims& target) {
  return target.size() == weights.dims.size() + 1 && target.size() > 2 &&
         target[2] > weights.dims[1];
}

absl::StatusOr<AlignedBuffer> WithZerosBetweenGroups(const graph::Weights& weights,
                                                     absl::Span<const float> elements,
                                                     const Dims& target) {
  const int64_t count = static_cast<int64_t>(elements.size()), rows = weights.dims[0];
  const int64_t row = count / rows;  // of one output
  const int64_t merged = target[2] / weights.dims[1], outputs = target[1] / merged;
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer,
                        AlignedBuffer::Allocate(count * merged * sizeof(float)));
  float* to = reinterpret_cast<float*>(buffer.data());
  std::fill_n(to, count * merged, 0.0f);
  for (int64_t o = 0; o < rows; ++o) {
    const int64_t place = o / outputs % merged;  // of its group among the merged ones
    std::copy_n(elements.data() + o * row, row, to + (o * merged + place) * row);
  }
  return buffer;
}

}  // namespace tilewire::runtime
