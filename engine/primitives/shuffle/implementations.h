// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of shuffle.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_

#include <vector>

#include "engine/primitives/shuffle/shuffle.h"

namespace tilewire::shuffle {

absl::StatusOr<ShuffleDesc> ResolveBlocked(const ShuffleDesc& desc, const Attributes& attributes,
                                           const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateBlocked(const ShuffleDesc& desc,
                                                         const Attributes& attributes,
                                                         const ImplementationFacts& facts);

absl::StatusOr<ShuffleDesc> ResolveReference(const ShuffleDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ShuffleDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

// The primitive's description of itself, whatever the implementation.
PrimitiveInfo InfoOf(const ShuffleDesc& desc, const Attributes& attributes,
                     const ImplementationFacts& facts);

// Element i of the destination's axis is element SourceIndices()[i] of the source's.
std::vector<int64_t> SourceIndices(const ShuffleDesc& desc);

}  // namespace tilewire::shuffle

#endif  // ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_
