// SPDX-License-Identifier: Apache-2.0
//
// Generates functions that assemble S vectors of 16 lanes of 4 bytes from S others (S = 2, 4, 8 or
// 16) when each takes equally many lanes from each, as in the transposition of a matrix. They take
// log2(S) steps of S permutations of two vectors, where gathering each vector on its own
// (lane_gather.h) takes S * S. For units of 16 lanes with masks. A shuffle of channels in S groups
// consists of such transpositions.
#ifndef ENGINE_KERNELS_MOVES_LANE_TRANSPOSE_H_
#define ENGINE_KERNELS_MOVES_LANE_TRANSPOSE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/kernels/moves/lane_gather.h"

namespace tilewire {

// One pattern per vector of dst; their sources are numbered alike, 0 to S - 1.
using LaneTransposePattern = std::vector<LanePattern>;

// Whether CompileLaneTranspose() takes the pattern. Pure.
bool IsLaneTranspose(const LaneGatherConfig& config, const LaneTransposePattern& pattern);

// From patterns for which IsLaneTranspose() holds.
//   kResourceExhausted  see jit::Compile()
absl::StatusOr<LaneGather> CompileLaneTranspose(absl::string_view name,
                                                absl::Span<const LaneTransposePattern> patterns);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_MOVES_LANE_TRANSPOSE_H_
