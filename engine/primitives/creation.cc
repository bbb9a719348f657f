// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/creation.h"

#include <cmath>
#include <initializer_list>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire {

absl::Status CheckSource(absl::string_view name, const MemoryDesc& desc) {
  if (desc.IsZero() || desc.IsAny()) {
    return InvalidArgument(name, " has no layout");
  }
  return absl::OkStatus();
}

absl::Status CheckDestination(absl::string_view name, const MemoryDesc& desc) {
  if (desc.IsZero()) return InvalidArgument(name, " is missing");
  if (!desc.IsAny() && desc.Overlaps()) {
    return InvalidArgument("elements of ", name, " overlap: ", desc.ToString());
  }
  return absl::OkStatus();
}

absl::Status CheckTensors(absl::string_view primitive, const MemoryDesc& src,
                          const MemoryDesc& dst) {
  ABSL_RETURN_IF_ERROR(CheckSource(absl::StrCat(primitive, ": src"), src));
  return CheckDestination(absl::StrCat(primitive, ": dst"), dst);
}

absl::Status CheckSameShape(absl::string_view primitive, const MemoryDesc& src,
                            const MemoryDesc& dst) {
  if (src.dims() == dst.dims() && src.data_type() == dst.data_type()) return absl::OkStatus();
  return InvalidArgument(primitive, ": src is ", src.ToString(), ", dst ", dst.ToString());
}

absl::Status CheckAxis(absl::string_view primitive, int axis, const MemoryDesc& tensor) {
  if (axis >= 0 && axis < tensor.rank()) return absl::OkStatus();
  return InvalidArgument(primitive, ": axis ", axis, " of a tensor of rank ", tensor.rank());
}

absl::Status CheckRank(absl::string_view primitive, const MemoryDesc& src, int least, int most) {
  if (src.rank() >= least && src.rank() <= most) return absl::OkStatus();
  return InvalidArgument(primitive, ": src has rank ", src.rank(), ", allowed are ", least, " to ",
                         most);
}

absl::Status CheckSameDims(absl::string_view a_name, const MemoryDesc& a, absl::string_view b_name,
                           const MemoryDesc& b) {
  if (a.dims() == b.dims()) return absl::OkStatus();
  return InvalidArgument(a_name, " ", DimsToString(a.dims()), " does not match ", b_name, " ",
                         DimsToString(b.dims()));
}

absl::Status RequireType(DataType type, absl::Span<const MemoryDesc* const> tensors) {
  for (const MemoryDesc* tensor : tensors) {
    if (tensor->IsZero() || tensor->data_type() == type) continue;
    return Unimplemented("takes ", DataTypeName(type), " only, not ",
                         DataTypeName(tensor->data_type()));
  }
  return absl::OkStatus();
}

absl::Status RequireIntegerTypes(const MemoryDesc& src, const MemoryDesc& weights,
                                 const MemoryDesc& bias, const MemoryDesc& dst) {
  using enum DataType;
  const auto require = [](absl::string_view name, const MemoryDesc& desc,
                          std::initializer_list<DataType> allowed) -> absl::Status {
    for (DataType type : allowed) {
      if (desc.data_type() == type) return absl::OkStatus();
    }
    return Unimplemented("does not take ", name, " of ", DataTypeName(desc.data_type()), " here");
  };
  ABSL_RETURN_IF_ERROR(require("src", src, {kU8, kS8}));
  ABSL_RETURN_IF_ERROR(require("weights", weights, {kS8}));
  if (!bias.IsZero()) ABSL_RETURN_IF_ERROR(require("bias", bias, {kF32, kS32}));
  return require("dst", dst, {kU8, kS8, kS32, kF32});
}

absl::Status CheckOutputScales(absl::string_view name, const MemoryDesc& dst,
                               const OutputScales& scales) {
  if (scales.mask < 0 || scales.mask >> dst.rank() != 0) {
    return InvalidArgument(name, ": scale mask ", scales.mask, " names a dimension that ",
                           dst.ToString(), " has not");
  }
  int64_t count = 1;
  for (int d = 0; d < dst.rank(); ++d) {
    if (scales.mask >> d & 1) count *= dst.dim(d);
  }
  if (static_cast<int64_t>(scales.scales.size()) != count) {
    return InvalidArgument(name, ": ", scales.scales.size(),
                           " output scales where the mask asks for ", count);
  }
  for (float scale : scales.scales) {
    if (!std::isfinite(scale)) return InvalidArgument(name, ": an output scale is not finite");
  }
  return absl::OkStatus();
}

absl::Status CheckChannelScales(absl::string_view name, const MemoryDesc& dst,
                                const OutputScales& scales) {
  ABSL_RETURN_IF_ERROR(CheckOutputScales(name, dst, scales));
  if (scales.mask == 0 || scales.mask == 2) return absl::OkStatus();
  return Unimplemented(name, ": scale mask ", scales.mask,
                       " is neither 0 (one scale) nor 2 (one per output channel)");
}

absl::Status RequireNoPostOps(const Attributes& attributes) {
  if (!attributes.post_ops.empty()) {
    return Unimplemented("takes no post-ops, got ", attributes.post_ops.ToString());
  }
  return RequireNoOutputScales(attributes);
}

absl::Status RequireNoOutputScales(const Attributes& attributes) {
  if (attributes.output_scales.IsDefault()) return absl::OkStatus();
  return Unimplemented("takes no output scales");
}

absl::Status RequireInference(PropKind prop_kind) {
  if (prop_kind == PropKind::kForwardInference) return absl::OkStatus();
  return Unimplemented("takes inference only");
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

PrimitiveInfo BasicInfo(const ImplementationFacts& facts, PrimitiveKind kind, PropKind prop_kind,
                        std::vector<ArgDesc> args, const Attributes& attributes) {
  for (ArgDesc& entry : args) {
    if (IsBackward(prop_kind)) entry.is_output = IsOutput(prop_kind, entry.arg);
  }
  PrimitiveInfo info;
  info.name = std::string(facts.name);
  info.isa = facts.isa;
  info.traits = facts.traits;
  info.kind = kind;
  info.args = std::move(args);
  info.scratchpad_mode = attributes.scratchpad_mode;
  return info;
}

}  // namespace tilewire
