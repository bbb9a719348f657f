// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; matmul.cc lists the rows. See implementation.h for
// resolve and create.
#ifndef ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/matmul/matmul.h"

namespace tilewire::matmul {

absl::StatusOr<MatmulDesc> ResolveTiles(const MatmulDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const MatmulDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const MatmulDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

absl::StatusOr<MatmulDesc> ResolveReference(const MatmulDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const MatmulDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

PrimitiveInfo InfoOf(const MatmulDesc& desc, const Attributes& attributes, absl::string_view name);

}  // namespace tilewire::matmul

#endif  // ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_
