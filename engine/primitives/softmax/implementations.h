// SPDX-License-Identifier: Apache-2.0
//
// The rows of softmax's table, one file each.
#ifndef ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_

#include "engine/primitives/softmax/softmax.h"

namespace tilewire::softmax {

absl::StatusOr<SoftmaxDesc> ResolveDenseF32(const SoftmaxDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseF32(const SoftmaxDesc& desc,
                                                          const Attributes& attributes,
                                                          absl::string_view name);

// Both resolve as dense_f32 does.
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const SoftmaxDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const SoftmaxDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

absl::StatusOr<SoftmaxDesc> ResolveReference(const SoftmaxDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const SoftmaxDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

}  // namespace tilewire::softmax

#endif  // ENGINE_PRIMITIVES_SOFTMAX_IMPLEMENTATIONS_H_
