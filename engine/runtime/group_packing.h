// SPDX-License-Identifier: Apache-2.0
//
// Weights of groups that are computed several at a time (lowering/group_merging.h): zeros between
// channels of different groups. Pure functions; thread-safe.
#ifndef ENGINE_RUNTIME_GROUP_PACKING_H_
#define ENGINE_RUNTIME_GROUP_PACKING_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/base/aligned_buffer.h"
#include "engine/memory/dims.h"
#include "engine/network/network.h"

namespace tilewire::runtime {

// Whether `target` are the dims [g', O/g', I/g', k...] of such weights, with fewer groups than the
// weights [O, I/g, k...] have.
bool MergesGroups(const network::Weights& weights, const Dims& target);

// The `elements` of the weights in row-major order of the dims of `target`, with zeros between
// groups.
//   kResourceExhausted  memory
absl::StatusOr<AlignedBuffer> WithZerosBetweenGroups(const network::Weights& weights,
                                                     absl::Span<const float> elements,
                                                     const Dims& target);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_GROUP_PACKING_H_
