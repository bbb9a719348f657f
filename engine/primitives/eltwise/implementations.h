// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of eltwise.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_

#include "engine/primitives/eltwise/eltwise.h"

namespace tilewire::eltwise {

// One layout on both sides, dense: what the generated rows take.
absl::StatusOr<EltwiseDesc> ResolveDense(const EltwiseDesc& desc, const Attributes& attributes,
                                         const ImplementationFacts& facts);
absl::StatusOr<EltwiseDesc> ResolveReference(const EltwiseDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const EltwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::eltwise

#endif  // ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_
