// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of top_k.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_TOP_K_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_TOP_K_IMPLEMENTATIONS_H_

#include "engine/primitives/top_k/top_k.h"

namespace tilewire::top_k {

absl::StatusOr<TopKDesc> ResolvePartialSort(const TopKDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreatePartialSort(const TopKDesc& desc,
                                                             const Attributes& attributes,
                                                             const ImplementationFacts& facts);

absl::StatusOr<TopKDesc> ResolveReference(const TopKDesc& desc, const Attributes& attributes,
                                          const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const TopKDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::top_k

#endif  // ENGINE_PRIMITIVES_TOP_K_IMPLEMENTATIONS_H_
