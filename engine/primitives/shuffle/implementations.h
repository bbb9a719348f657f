// SPDX-License-Identifier: Apache-2.0
//
// The rows of shuffle's table, one file each.
#ifndef ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_

#include <vector>

#include "engine/primitives/shuffle/shuffle.h"

namespace tilewire::shuffle {

absl::StatusOr<ShuffleDesc> ResolveBlocked(const ShuffleDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateBlocked(const ShuffleDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

absl::StatusOr<ShuffleDesc> ResolveAvx512Lanes(const ShuffleDesc& desc,
                                               const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Lanes(const ShuffleDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name);

absl::StatusOr<ShuffleDesc> ResolveAvx2Lanes(const ShuffleDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Lanes(const ShuffleDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<ShuffleDesc> ResolveReference(const ShuffleDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ShuffleDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

// What the primitive tells about itself, whatever the implementation.
PrimitiveInfo InfoOf(const ShuffleDesc& desc, const Attributes& attributes, absl::string_view name);

// Element i of the destination's axis is element SourceIndices()[i] of the source's.
std::vector<int64_t> SourceIndices(const ShuffleDesc& desc);

}  // namespace tilewire::shuffle

#endif  // ENGINE_PRIMITIVES_SHUFFLE_IMPLEMENTATIONS_H_
