// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/gradients.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"

namespace tilewire {

absl::Status CheckGradient(absl::string_view primitive, absl::string_view name,
                           const MemoryDesc& gradient, const MemoryDesc& of, GradientUse use) {
  const std::string what = absl::StrCat(primitive, ": ", name);
  if (gradient.IsZero()) return InvalidArgument(what, " is missing");
  if (gradient.dims() != of.dims() || gradient.data_type() != of.data_type()) {
    return InvalidArgument(what, " is ", gradient.ToString(), ", its tensor ", of.ToString());
  }
  return use == GradientUse::kRead ? absl::OkStatus() : CheckDestination(what, gradient);
}

absl::Status CheckAbsent(absl::string_view primitive, PropKind prop_kind, absl::string_view name,
                         const MemoryDesc& desc) {
  if (desc.IsZero()) return absl::OkStatus();
  return InvalidArgument(primitive, ": ", name, " ", desc.ToString(), " is given to ",
                         PropKindName(prop_kind), ", which has no use for it");
}

}  // namespace tilewire
