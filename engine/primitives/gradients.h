// SPDX-License-Identifier: Apache-2.0
//
// Descriptors of primitives that run backward, checked and resolved. A gradient has the shape and
// the type of the tensor that it belongs to, and may be `any`: that tensor's layout. Pure;
// thread-safe.
#ifndef ENGINE_PRIMITIVES_GRADIENTS_H_
#define ENGINE_PRIMITIVES_GRADIENTS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/creation.h"
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

// Backward from diff_dst to diff_src, both of the shape of `saved`; forward, which has neither.
template <typename Desc>
absl::Status CheckGradientsLike(absl::string_view primitive, const Desc& desc,
                                const MemoryDesc& saved) {
  ABSL_RETURN_IF_ERROR(
      CheckGradient(primitive, "diff_dst", desc.diff_dst, saved, GradientUse::kRead));
  return CheckGradient(primitive, "diff_src", desc.diff_src, saved, GradientUse::kWritten);
}
template <typename Desc>
absl::Status CheckNoGradients(absl::string_view primitive, const Desc& desc) {
  ABSL_RETURN_IF_ERROR(CheckAbsent(primitive, desc.prop_kind, "diff_src", desc.diff_src));
  return CheckAbsent(primitive, desc.prop_kind, "diff_dst", desc.diff_dst);
}

// The tensors of a primitive whose dst has the dims of src, which backward reads in place of dst.
template <typename Desc>
absl::Status CheckTensorsOf(absl::string_view primitive, const Desc& desc) {
  const std::string src = absl::StrCat(primitive, ": src");
  if (IsBackward(desc.prop_kind)) {
    ABSL_RETURN_IF_ERROR(CheckSource(src, desc.src));
    ABSL_RETURN_IF_ERROR(CheckAbsent(primitive, desc.prop_kind, "dst", desc.dst));
    return CheckGradientsLike(primitive, desc, desc.src);
  }
  ABSL_RETURN_IF_ERROR(CheckTensors(primitive, desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameDims(src, desc.src, "dst", desc.dst));
  return CheckNoGradients(primitive, desc);
}

// Resolves a descriptor that runs backward from `saved`, of f32, without post-ops.
template <typename Desc>
absl::StatusOr<Desc> ResolveF32Gradients(const Request<Desc>& request, const MemoryDesc& saved) {
  ABSL_RETURN_IF_ERROR(RequireF32(saved));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  Desc resolved = request.desc;
  ABSL_ASSIGN_OR_RETURN(resolved.diff_src, OrLayoutOf(resolved.diff_src, saved));
  ABSL_ASSIGN_OR_RETURN(resolved.diff_dst, OrLayoutOf(resolved.diff_dst, saved));
  return resolved;
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_GRADIENTS_H_
