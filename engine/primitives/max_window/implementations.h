// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of max_window.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_MAX_WINDOW_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_MAX_WINDOW_IMPLEMENTATIONS_H_

#include "engine/primitives/max_window/max_window.h"

namespace tilewire::max_window {

absl::StatusOr<MaxWindowDesc> ResolvePlainRows(const MaxWindowDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreatePlainRows(const MaxWindowDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

absl::StatusOr<MaxWindowDesc> ResolveReference(const MaxWindowDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const MaxWindowDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::max_window

#endif  // ENGINE_PRIMITIVES_MAX_WINDOW_IMPLEMENTATIONS_H_
