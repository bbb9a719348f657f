// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of binary.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/binary/binary.h"

namespace tilewire::binary {

absl::StatusOr<BinaryDesc> ResolveReference(const BinaryDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const BinaryDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

PrimitiveInfo InfoOf(const BinaryDesc& desc, const Attributes& attributes,
                     const ImplementationFacts& facts);

}  // namespace tilewire::binary

#endif  // ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_
