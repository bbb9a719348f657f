// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; pooling.cc lists the rows. See implementation.h for
// resolve and create.
#ifndef ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/pooling/pooling.h"

namespace tilewire::pooling {

absl::StatusOr<PoolingDesc> ResolveAvx512F32(const PoolingDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<PoolingDesc> ResolveAvx2F32(const PoolingDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const PoolingDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

absl::StatusOr<PoolingDesc> ResolveAvx512Integer(const PoolingDesc& desc,
                                                 const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Integer(const PoolingDesc& desc,
                                                               const Attributes& attributes,
                                                               absl::string_view name);

absl::StatusOr<PoolingDesc> ResolveAvx2Integer(const PoolingDesc& desc,
                                               const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Integer(const PoolingDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name);

absl::StatusOr<PoolingDesc> ResolveAvx512Plain(const PoolingDesc& desc,
                                               const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Plain(const PoolingDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name);

absl::StatusOr<PoolingDesc> ResolveAvx2Plain(const PoolingDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Plain(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<PoolingDesc> ResolveReference(const PoolingDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const PoolingDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

// The descriptor with a dst in the place of `any`; kUnimplemented for types and attributes that no
// row takes.
absl::StatusOr<PoolingDesc> ResolveDefaults(const PoolingDesc& desc, const Attributes& attributes);

// kUnimplemented  not u8, s8 or s32; the message names the type
absl::Status RequireInteger(const MemoryDesc& desc);

}  // namespace tilewire::pooling

#endif  // ENGINE_PRIMITIVES_POOLING_IMPLEMENTATIONS_H_
