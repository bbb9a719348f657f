// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of concat.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_

#include "engine/primitives/concat/concat.h"

namespace tilewire::concat {

absl::StatusOr<ConcatDesc> ResolveBlockCopy(const ConcatDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateBlockCopy(const ConcatDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

absl::StatusOr<ConcatDesc> ResolveReference(const ConcatDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ConcatDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::concat

#endif  // ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_
