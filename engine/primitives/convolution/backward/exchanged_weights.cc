// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/exchanged_weights.h"

#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/threading/stop.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kChannelsAtOnce = 16;  // of either side: their taps stay in the first cache

}  // namespace

Dims ExchangedDims(Dims weights, bool grouped) {
  const int outputs = grouped ? 1 : 0;
  std::swap(weights[outputs], weights[outputs + 1]);
  return weights;
}

ExchangedWeights::Offsets ExchangedWeights::Along(const MemoryDesc& from, int from_dim,
                                                  const MemoryDesc& to, int to_dim) {
  const SeparableOffsets source(from), target(to);
  Offsets offsets;
  for (int64_t i = 0; i < from.dim(from_dim); ++i) {
    offsets.from.push_back(source.At(from_dim, i));
    offsets.to.push_back(target.At(to_dim, i));
  }
  return offsets;
}

ExchangedWeights::Offsets ExchangedWeights::OfTaps(const MemoryDesc& from, const MemoryDesc& to,
                                                   int first, bool flips) {
  const SeparableOffsets source(from), target(to);
  const Dims kernel(from.dims().begin() + first, from.dims().end());
  Offsets offsets;
  ForEachIndex(kernel, [&](const Dims& tap) {
    int64_t at = 0, copy = 0;
    for (int i = 0; i < static_cast<int>(tap.size()); ++i) {
      at += source.At(first + i, tap[i]);
      copy += target.At(first + i, flips ? kernel[i] - 1 - tap[i] : tap[i]);
    }
    offsets.from.push_back(at);
    offsets.to.push_back(copy);
  });
  return offsets;
}

ExchangedWeights::ExchangedWeights(const MemoryDesc& from, const MemoryDesc& to, bool grouped,
                                   bool flips)
    : from_offset_(from.offset0()),
      to_offset_(to.offset0()),
      to_elements_(to.PaddedElementCount()),
      has_padding_(to.HasPadding()) {
  const int outputs = grouped ? 1 : 0;
  groups_ = grouped ? Along(from, 0, to, 0) : Offsets{{0}, {0}};
  outputs_ = Along(from, outputs, to, outputs + 1);
  inputs_ = Along(from, outputs + 1, to, outputs);
  taps_ = OfTaps(from, to, outputs + 2, flips);
}

void ExchangedWeights::Run(const float* from, float* to, const threading::Team& team) const {
  from += from_offset_;
  to += to_offset_;
  if (has_padding_) std::fill(to, to + to_elements_, 0.0f);
  const int64_t pieces = DivUp(static_cast<int64_t>(inputs_.from.size()), kChannelsAtOnce);
  team.ParallelFor(static_cast<int64_t>(groups_.from.size()) * pieces, [&](int64_t index) {
    const int64_t group = index / pieces;
    Copy(from + groups_.from[group], to + groups_.to[group], index % pieces * kChannelsAtOnce);
  });
}

// A few input channels of a group.
void ExchangedWeights::Copy(const float* from, float* to, int64_t first_input) const {
  const int64_t inputs = static_cast<int64_t>(inputs_.from.size());
  const int64_t outputs = static_cast<int64_t>(outputs_.from.size());
  const int64_t taps = static_cast<int64_t>(taps_.from.size());
  const int64_t end_input = std::min(inputs, first_input + kChannelsAtOnce);
  for (int64_t first = 0; first < outputs && !threading::Stopped(); first += kChannelsAtOnce) {
    const int64_t end = std::min(outputs, first + kChannelsAtOnce);
    for (int64_t i = first_input; i < end_input; ++i) {
      for (int64_t o = first; o < end; ++o) {
        const float* const source = from + outputs_.from[o] + inputs_.from[i];
        float* const target = to + outputs_.to[o] + inputs_.to[i];
        for (int64_t t = 0; t < taps; ++t) target[taps_.to[t]] = source[taps_.from[t]];
      }
    }
  }
}

}  // namespace tilewire::convolution
