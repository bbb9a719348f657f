// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/gradients.h"

#include <string>
#include <variant>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/weighted_gradients.h"
#include "engine/threading/ranges.h"

namespace tilewire {
namespace {

constexpr int64_t kMaskedAtOnce = 16 * 1024;  // elements that a thread takes
constexpr int64_t kMaskedLine = 16;           // elements of a vectorized step

absl::Status CheckPostOps(absl::string_view primitive, PropKind prop_kind,
                          const PostOps& post_ops) {
  const bool of_src = prop_kind == PropKind::kBackwardData;
  bool may_add = true;
  for (const PostOp& entry : post_ops.entries()) {
    const auto* const sum = std::get_if<SumPostOp>(&entry);
    const bool taken = sum != nullptr ? may_add && sum->scale == 1
                                      : of_src && std::holds_alternative<MaskPostOp>(entry);
    may_add = false;
    if (taken) continue;
    return Unimplemented(primitive, ": ", PropKindName(prop_kind), " takes a sum of scale 1",
                         of_src ? " and then a mask" : "", " as post-ops, not ",
                         post_ops.ToString());
  }
  return absl::OkStatus();
}

}  // namespace

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

absl::Status CheckWeightedGradients(absl::string_view primitive, PropKind prop_kind,
                                    const MemoryDesc& bias, const Attributes& attributes,
                                    absl::Span<const MemoryDesc* const> outputs) {
  const bool of_weights = prop_kind == PropKind::kBackwardWeights;
  // Every row refuses other propagations by their name.
  if (!of_weights && prop_kind != PropKind::kBackwardData) return absl::OkStatus();
  if (!of_weights) ABSL_RETURN_IF_ERROR(CheckAbsent(primitive, prop_kind, "bias", bias));
  for (const MemoryDesc* output : outputs) {
    if (output->format_kind() == FormatKind::kBlocked && output->Overlaps())
      return InvalidArgument(primitive,
                             ": elements of a gradient share an address: ", output->ToString());
  }
  ABSL_RETURN_IF_ERROR(CheckPostOps(primitive, prop_kind, attributes.post_ops));
  if (attributes.output_scales.IsDefault()) return absl::OkStatus();
  return Unimplemented(primitive, ": ", PropKindName(prop_kind), " takes no output scales");
}

GradientEnd::GradientEnd(const PostOps& post_ops) : adds_(post_ops.HasSum()) {
  const MaskPostOp* const mask = post_ops.Mask();
  masks_ = mask != nullptr;
  if (masks_) alpha_ = mask->alpha;
}

void ApplyMask(const PostOps& post_ops, const MemoryDesc& diff_src, const float* activation,
               float* gradients, const threading::Team& team) {
  if (post_ops.Mask() == nullptr) return;
  const float alpha = post_ops.Mask()->alpha;
  const auto masked = [alpha](float y, float value) { return y > 0 ? value : alpha * value; };
  threading::ParallelForRanges(team, diff_src.PaddedElementCount(), kMaskedAtOnce,
                               [&](int64_t begin, int64_t end) {
                                 int64_t i = begin;
                                 for (; i + kMaskedLine <= end; i += kMaskedLine) {
                                   for (int64_t j = i; j < i + kMaskedLine; ++j)
                                     gradients[j] = masked(activation[j], gradients[j]);
                                 }
                                 for (; i < end; ++i)
                                   gradients[i] = masked(activation[i], gradients[i]);
                               });
}

absl::Status RequireMaskable(const MemoryDesc& diff_src, const Attributes& attributes) {
  if (attributes.post_ops.Mask() == nullptr || diff_src.IsDense()) return absl::OkStatus();
  return Unimplemented("masks a dense gradient only, not ", diff_src.ToString());
}

Attributes WithoutMask(const Attributes& attributes) {
  Attributes inside;
  inside.scratchpad_mode = ScratchpadMode::kUser;
  inside.precision = attributes.precision;
  if (attributes.post_ops.HasSum()) (void)inside.post_ops.Append(SumPostOp{});  // the first fits
  return inside;
}

std::vector<ArgDesc> GradientArgsOf(PropKind prop_kind, const MemoryDesc& src,
                                    const MemoryDesc& weights, const MemoryDesc& bias,
                                    const MemoryDesc& dst, const PostOps& post_ops) {
  if (prop_kind == PropKind::kBackwardWeights) {
    std::vector<ArgDesc> args = {{kArgSrc, src}, {kArgDiffDst, dst}, {kArgDiffWeights, weights}};
    if (!bias.IsZero()) args.push_back({kArgDiffBias, bias});
    return args;
  }
  std::vector<ArgDesc> args = {{kArgDiffDst, dst}, {kArgWeights, weights}, {kArgDiffSrc, src}};
  if (post_ops.Mask() != nullptr) args.push_back({kArgSrc1, src});
  return args;
}

}  // namespace tilewire
