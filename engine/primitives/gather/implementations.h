// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of gather.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_GATHER_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_GATHER_IMPLEMENTATIONS_H_

#include "engine/primitives/gather/gather.h"

namespace tilewire::gather {

absl::StatusOr<GatherDesc> ResolveSliceCopy(const GatherDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateSliceCopy(const GatherDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

absl::StatusOr<GatherDesc> ResolveReference(const GatherDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const GatherDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::gather

#endif  // ENGINE_PRIMITIVES_GATHER_IMPLEMENTATIONS_H_
