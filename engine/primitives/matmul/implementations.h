// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of matmul.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/matmul/matmul.h"

namespace tilewire::matmul {

absl::StatusOr<MatmulDesc> ResolveTiles(const MatmulDesc& desc, const Attributes& attributes,
                                        const ImplementationFacts& facts);
absl::StatusOr<MatmulDesc> ResolveReference(const MatmulDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const MatmulDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::matmul

#endif  // ENGINE_PRIMITIVES_MATMUL_IMPLEMENTATIONS_H_
