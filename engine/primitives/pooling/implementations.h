// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of pooling.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

absl::StatusOr<PoolingDesc> ResolveReference(const PoolingDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

// The descriptor with a dst in the place of `any`; kUnimplemented for types and attributes that no
// row takes.
absl::StatusOr<PoolingDesc> ResolveDefaults(const PoolingDesc& desc, const Attributes& attributes);

// kUnimplemented  not u8, s8 or s32; the message names the type
absl::Status RequireInteger(const MemoryDesc& desc);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_
