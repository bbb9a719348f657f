// SPDX-License-Identifier: Apache-2.0
//
// LRN across the channels of blocked tensors, shared by avx512_f32_blocked and avx2_f32_blocked.
// A vector holds the block's channels of a pixel; its neighbours are in the blocks before and
// after, and the squares of all three are shifted over each other.
#ifndef ENGINE_PRIMITIVES_LRN_BLOCKED_H_
#define ENGINE_PRIMITIVES_LRN_BLOCKED_H_

#include "engine/primitives/lrn/lrn.h"

namespace tilewire::lrn {

// kUnimplemented  another block than the vector's length, or neighbours beyond the next block
absl::StatusOr<LrnDesc> ResolveBlocked(const LrnDesc& desc, const Attributes& attributes,
                                       const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateBlocked(const LrnDesc& desc,
                                                         const Attributes& attributes,
                                                         const ImplementationFacts& facts);

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_BLOCKED_H_
