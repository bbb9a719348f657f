// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_

#include "engine/primitives/lrn/lrn.h"

namespace tilewire::lrn {

// LRN across the channels of blocked tensors, shared by avx512_f32_blocked and avx2_f32_blocked.
// A vector holds the block's channels of a pixel; its neighbours are in the blocks before and
// after, and the squares of all three are shifted over each other.
// kUnimplemented  another block than the vector's length, or neighbours beyond the next block
TILEWIRE_ROW(LrnDesc, Blocked);

// The gradient of the same, shared by avx512_f32_blocked_backward and avx2_f32_blocked_backward.
// kUnimplemented  likewise, and as RequirePositiveBases()
TILEWIRE_ROW(LrnDesc, BlockedBackward);

// LRN over runs of memory (run_walk.h), shared by avx512_f32_runs and avx2_f32_runs: one kernel
// with a list of distances serves them all. src and dst have one layout.
TILEWIRE_ROW(LrnDesc, Runs);

// The gradient of the same, whose tensors have one layout.
// kUnimplemented  as RequirePositiveBases()
TILEWIRE_ROW(LrnDesc, RunsBackward);

TILEWIRE_ROW(LrnDesc, Reference);

TILEWIRE_ROW(LrnDesc, ReferenceBackward);

// Without code.
PrimitiveInfo BackwardInfoOf(const Request<LrnDesc>& request);

// The descriptor with a dst in the place of `any`; kUnimplemented for types and attributes that no
// row takes.
absl::StatusOr<LrnDesc> ResolveDefaults(const LrnDesc& desc, const Attributes& attributes);

// Gradients need it: else what pads a block could have terms that are not finite, which its
// neighbours would add.
// kUnimplemented  k or alpha by which the base of a power need not be positive
absl::Status RequirePositiveBases(const LrnDesc& desc);

// alpha / summands.
float ScaleOf(const LrnDesc& desc);
// How far neighbours reach on either side.
inline int64_t ReachOf(const LrnDesc& desc) { return (desc.local_size - 1) / 2; }
// 0 to the power is not finite: the padded tail does not come out as zero by itself.
inline bool SpoilsPadding(const LrnDesc& desc) { return !(desc.k > 0); }

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_
