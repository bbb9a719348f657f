// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/creation.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tilewire {

absl::Status CheckSource(absl::string_view name, const MemoryDesc& desc) {
  if (desc.IsZero() || desc.IsAny()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " needs a layout"));
  }
  return absl::OkStatus();
}

absl::Status CheckDestination(absl::string_view name, const MemoryDesc& desc) {
  if (desc.IsZero()) return absl::InvalidArgumentError(absl::StrCat(name, " is missing"));
  if (!desc.IsAny() && desc.Overlaps()) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " ", desc.ToString(), ": two elements share an address"));
  }
  return absl::OkStatus();
}

absl::Status CheckSameDims(absl::string_view a_name, const MemoryDesc& a, absl::string_view b_name,
                           const MemoryDesc& b) {
  if (a.dims() == b.dims()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(a_name, " ", DimsToString(a.dims()),
                                                 " does not match ", b_name, " ",
                                                 DimsToString(b.dims())));
}

absl::Status RequireF32(const MemoryDesc& desc) {
  if (desc.data_type() == DataType::kF32) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("takes f32 only, not ", DataTypeName(desc.data_type())));
}

absl::Status RequireNoPostOps(const Attributes& attributes) {
  if (!attributes.post_ops.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("takes no post-ops, got ", attributes.post_ops.ToString()));
  }
  if (!attributes.output_scales.IsDefault()) {
    return absl::UnimplementedError("takes no output scales");
  }
  return absl::OkStatus();
}

PrimitiveInfo BasicInfo(absl::string_view name, PrimitiveKind kind, std::vector<ArgDesc> args,
                        const Attributes& attributes) {
  PrimitiveInfo info;
  info.name = std::string(name);
  info.kind = kind;
  info.args = std::move(args);
  info.scratchpad_mode = attributes.scratchpad_mode;
  return info;
}

}  // namespace tilewire
