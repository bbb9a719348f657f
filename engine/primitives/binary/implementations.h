// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; binary.cc lists the rows. See implementation.h for
// resolve and create.
#ifndef ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/binary/binary.h"

namespace tilewire::binary {

absl::StatusOr<BinaryDesc> ResolveAvx512F32(const BinaryDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const BinaryDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<BinaryDesc> ResolveAvx2F32(const BinaryDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const BinaryDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

absl::StatusOr<BinaryDesc> ResolveReference(const BinaryDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const BinaryDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

PrimitiveInfo InfoOf(const BinaryDesc& desc, const Attributes& attributes, absl::string_view name);

}  // namespace tilewire::binary

#endif  // ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_
