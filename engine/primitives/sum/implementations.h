// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of sum.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_

#include "engine/primitives/sum/sum.h"

namespace tilewire::sum {

// One dense layout of all tensors: what the generated rows take.
absl::StatusOr<SumDesc> ResolveDense(const SumDesc& desc, const Attributes& attributes,
                                     const ImplementationFacts& facts);
absl::StatusOr<SumDesc> ResolveReference(const SumDesc& desc, const Attributes& attributes,
                                         const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const SumDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::sum

#endif  // ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_
