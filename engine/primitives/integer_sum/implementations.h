// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of integer_sum.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_INTEGER_SUM_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_INTEGER_SUM_IMPLEMENTATIONS_H_

#include "engine/primitives/integer_sum/integer_sum.h"

namespace tilewire::integer_sum {

absl::StatusOr<IntegerSumDesc> ResolveDense(const IntegerSumDesc& desc,
                                            const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const IntegerSumDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts);

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseLoop(const IntegerSumDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

absl::StatusOr<IntegerSumDesc> ResolveReference(const IntegerSumDesc& desc,
                                                const Attributes& attributes,
                                                const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const IntegerSumDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::integer_sum

#endif  // ENGINE_PRIMITIVES_INTEGER_SUM_IMPLEMENTATIONS_H_
