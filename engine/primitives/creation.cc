// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/creation.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace tilewire {

absl::Status CheckSource(absl::string_view name, const MemoryDesc& desc) {
  if (desc.IsZero() || desc.IsAny()) {
    return absl::InvalidArgumentError(absl::StrCat(name, " has no layout"));
  }
  return absl::OkStatus();
}

absl::Status CheckDestination(absl::string_view name, const MemoryDesc& desc) {
  if (desc.IsZero()) return absl::InvalidArgumentError(absl::StrCat(name, " is missing"));
  if (!desc.IsAny() && desc.Overlaps()) {
    return absl::InvalidArgumentError(
        absl::StrCat("elements of ", name, " overlap: ", desc.ToString()));
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

absl::Status RequireType(DataType type, absl::Span<const MemoryDesc* const> tensors) {
  for (const MemoryDesc* tensor : tensors) {
    if (tensor->IsZero() || tensor->data_type() == type) continue;
    return absl::UnimplementedError(absl::StrCat("takes ", DataTypeName(type), " only, not ",
                                                 DataTypeName(tensor->data_type())));
  }
  return absl::OkStatus();
}

absl::Status RequireNoPostOps(const Attributes& attributes) {
  if (!attributes.post_ops.empty()) {
    return absl::UnimplementedError(
        absl::StrCat("takes no post-ops, got ", attributes.post_ops.ToString()));
  }
  return RequireNoOutputScales(attributes);
}

absl::Status RequireNoOutputScales(const Attributes& attributes) {
  if (attributes.output_scales.IsDefault()) return absl::OkStatus();
  return absl::UnimplementedError("takes no output scales");
}

absl::Status RequireForward(PropKind prop_kind) {
  if (prop_kind != PropKind::kBackwardData) return absl::OkStatus();
  return absl::UnimplementedError("does not run backward");
}

std::vector<ArgDesc> ArgsOf(const MemoryDesc& src, const MemoryDesc& dst) {
  return {{kArgSrc, src}, {kArgDst, dst}};
}

std::vector<ArgDesc> ArgsOf(const std::vector<MemoryDesc>& srcs, const MemoryDesc& dst) {
  std::vector<ArgDesc> args;
  for (size_t i = 0; i < srcs.size(); ++i) {
    args.push_back({kArgMultipleSrc + static_cast<int>(i), srcs[i]});
  }
  args.push_back({kArgDst, dst});
  return args;
}

std::vector<ArgDesc> ArgsOf(const MemoryDesc& src, const MemoryDesc& weights,
                            const MemoryDesc& bias, const MemoryDesc& dst) {
  std::vector<ArgDesc> args = {{kArgSrc, src}, {kArgWeights, weights}, {kArgDst, dst}};
  if (!bias.IsZero()) args.push_back({kArgBias, bias});
  return args;
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
