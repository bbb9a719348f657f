// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/group_merging.h"

#include <algorithm>
#include <numeric>

namespace tilewire::lowering {
namespace {

int64_t ChannelsOfBlock(cpu::Isa max_isa) {
  const cpu::Isa isa = max_isa & cpu::BestIsa();
  if (isa.Includes(cpu::Isa::kAvx512)) return 16;
  return isa.Includes(cpu::Isa::kAvx2) ? 8 : 1;
}

// How many neighbouring groups are merged: the fewest that fill whole blocks; 1 where products with
// zeros would cost more than copying, and for integers, which have other blocks of channels.
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

}  // namespace tilewire::lowering
