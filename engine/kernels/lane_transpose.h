// SPDX-License-Identifier: Apache-2.0
//
// Generates functions that put S vectors of 16 lanes of 4 bytes together from S others (S = 2, 4, 8
// or 16) when each takes equally many lanes of each, as a transposed matrix does: in log2(S) steps
// of S permutations of two vectors, where gathering each vector on its own (lane_gather.h) takes
// S * S. AVX-512. A shuffle of channels in as many groups is made of such exchanges.
#ifndef ENGINE_KERNELS_LANE_TRANSPOSE_H_
#define ENGINE_KERNELS_LANE_TRANSPOSE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/kernels/lane_gather.h"

namespace tilewire {

// One pattern a vector of dst; their sources are numbered alike, 0 to S - 1.
using LaneExchangePattern = std::vector<LanePattern>;

// Whether the functions below can do it. Pure.
bool IsLaneExchange(const LaneGatherConfig& config, const LaneExchangePattern& pattern);

// From patterns that are exchanges.
//   kResourceExhausted  see jit::Compile()
absl::StatusOr<LaneGather> CompileLaneExchange(absl::string_view name,
                                               absl::Span<const LaneExchangePattern> patterns);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_LANE_TRANSPOSE_H_
