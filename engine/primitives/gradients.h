// SPDX-License-Identifier: Apache-2.0
//
// Checks of the descriptors of primitives that run backward. A gradient has the shape and the type
// of the tensor that it belongs to, and may be `any`: that tensor's layout. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_GRADIENTS_H_
#define ENGINE_PRIMITIVES_GRADIENTS_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/propagation.h"

namespace tilewire {

enum class GradientUse { kRead, kWritten };

// The gradient `name` of the tensor `of`.
//   kInvalidArgument  it is missing, has another shape or type, or is written and its elements
//                     overlap
absl::Status CheckGradient(absl::string_view primitive, absl::string_view name,
                           const MemoryDesc& gradient, const MemoryDesc& of, GradientUse use);

// A field that the propagation has no use for.
//   kInvalidArgument  it is not the zero descriptor
absl::Status CheckAbsent(absl::string_view primitive, PropKind prop_kind, absl::string_view name,
                         const MemoryDesc& desc);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_GRADIENTS_H_
