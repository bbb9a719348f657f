// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of elementwise.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_

#include "engine/primitives/elementwise/elementwise.h"

namespace tilewire::elementwise {

absl::StatusOr<ElementwiseDesc> ResolveRows(const ElementwiseDesc& desc,
                                            const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const ElementwiseDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

absl::StatusOr<ElementwiseDesc> ResolveReference(const ElementwiseDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ElementwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::elementwise

#endif  // ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_
