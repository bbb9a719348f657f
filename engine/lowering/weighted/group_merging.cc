// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/weighted/group_merging.h"

#include <algorithm>
#include <numeric>

namespace tilewire::lowering {
namespace {

// How many neighbouring groups are merged: the fewest that fill whole blocks; 1 where products with
// zeros would cost more than copying, and for integers, which have other blocks of channels.
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

}  // namespace

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

}  // namespace tilewire::lowering
