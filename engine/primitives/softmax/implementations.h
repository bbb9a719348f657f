// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of softmax.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_

#include "engine/primitives/softmax/softmax.h"

namespace tilewire::softmax {

absl::StatusOr<SoftmaxDesc> ResolveDenseF32(const SoftmaxDesc& desc, const Attributes& attributes,
                                            const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseF32(const SoftmaxDesc& desc,
                                                          const Attributes& attributes,
                                                          const ImplementationFacts& facts);

absl::StatusOr<SoftmaxDesc> ResolveReference(const SoftmaxDesc& desc, const Attributes& attributes,
                                             const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const SoftmaxDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::softmax

#endif  // ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_
