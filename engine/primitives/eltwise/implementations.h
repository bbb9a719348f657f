// SPDX-License-Identifier: Apache-2.0
//
// The rows of eltwise's table, one file each.
#ifndef ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_

#include "engine/primitives/eltwise/eltwise.h"

namespace tilewire::eltwise {

// One layout on both sides, dense: what the generated rows take.
absl::StatusOr<EltwiseDesc> ResolveDense(const EltwiseDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Dense(const EltwiseDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Dense(const EltwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<EltwiseDesc> ResolveReference(const EltwiseDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const EltwiseDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

}  // namespace tilewire::eltwise

#endif  // ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_
