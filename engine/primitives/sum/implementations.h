// SPDX-License-Identifier: Apache-2.0
//
// The rows of sum's table, one file each.
#ifndef ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_

#include "engine/primitives/sum/sum.h"

namespace tilewire::sum {

// One dense layout of all tensors: what the generated rows take.
absl::StatusOr<SumDesc> ResolveDense(const SumDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512Dense(const SumDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2Dense(const SumDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<SumDesc> ResolveReference(const SumDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const SumDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

}  // namespace tilewire::sum

#endif  // ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_
