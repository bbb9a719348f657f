// SPDX-License-Identifier: Apache-2.0
//
// Groups of few channels. Those that are narrower than a block of channels would be computed in
// blocks of their own, to which every channel has to be copied; so neighbouring groups are computed
// as one that begins and ends at block boundaries, with zeros as the weights between channels of
// different groups. Pure functions; thread-safe.
#ifndef ENGINE_RUNTIME_GROUP_MERGING_H_
#define ENGINE_RUNTIME_GROUP_MERGING_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/cpu/isa.h"
#include "engine/graph/network.h"
#include "engine/memory/dims.h"

namespace tilewire::runtime {

// The weights [O, I/g, k...] as the primitive counts them: [g', O/g', I/g', k...] where there are
// groups, g' of them, each of as many neighbouring ones as fill blocks of `max_isa`.
Dims GroupedWeightsDims(const graph::Convolution& convolution, cpu::Isa max_isa);

// `target` are dims as above with groups that are merged.
bool MergesGroups(const graph::Weights& weights, const Dims& target);

// The `elements` of such weights, row-major in the dims of `target`, with zeros between groups.
//   kResourceExhausted  memory
absl::StatusOr<AlignedBuffer> WithZerosBetweenGroups(const graph::Weights& weights,
                                                     absl::Span<const float> elements,
                                                     const Dims& target);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_GROUP_MERGING_H_
