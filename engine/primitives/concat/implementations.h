// SPDX-License-Identifier: Apache-2.0
//
// The rows of concat's table, one file each.
#ifndef ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_

#include "engine/primitives/concat/concat.h"

namespace tilewire::concat {

absl::StatusOr<ConcatDesc> ResolveBlockCopy(const ConcatDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateBlockCopy(const ConcatDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<ConcatDesc> ResolveAvx512Lanes(const ConcatDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Lanes(const ConcatDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name);

absl::StatusOr<ConcatDesc> ResolveAvx2Lanes(const ConcatDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Lanes(const ConcatDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<ConcatDesc> ResolveReference(const ConcatDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const ConcatDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

}  // namespace tilewire::concat

#endif  // ENGINE_PRIMITIVES_CONCAT_IMPLEMENTATIONS_H_
