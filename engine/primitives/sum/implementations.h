// SPDX-License-Identifier: Apache-2.0
//
// The rows of sum's table, one file each.
#ifndef ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_

#include "engine/primitives/sum/sum.h"

namespace tilewire::sum {

absl::StatusOr<SumDesc> ResolveDenseF32(const SumDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseF32(const SumDesc& desc,
                                                          const Attributes& attributes,
                                                          absl::string_view name);

absl::StatusOr<SumDesc> ResolveReference(const SumDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const SumDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

}  // namespace tilewire::sum

#endif  // ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_
