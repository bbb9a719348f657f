// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/channel_blocking.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/primitives/reorder/reorder.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace reorder {
namespace {

absl::Status Validate(const ReorderDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(CheckSource("reorder: src", desc.src));
  ABSL_RETURN_IF_ERROR(CheckSource("reorder: dst", desc.dst));  // `any` is not a layout to copy to
  ABSL_RETURN_IF_ERROR(CheckSameDims("reorder: src", desc.src, "dst", desc.dst));
  ABSL_RETURN_IF_ERROR(CheckDestination("reorder: dst", desc.dst));
  if (desc.src.HasCompensation()) {
    return Unimplemented("reorder: src carries compensation: packed weights are not read back");
  }
  return CheckOutputScales("reorder", desc.dst, attributes.output_scales);
}

}  // namespace

absl::Status RequireBlocked(const ReorderDesc& desc) {
  for (const MemoryDesc* tensor : {&desc.src, &desc.dst}) {
    if (tensor->format_kind() != FormatKind::kBlocked) {
      return Unimplemented("neither reads nor writes Winograd's layout or planes of weights");
    }
  }
  return absl::OkStatus();
}

absl::Status RequirePlainCopy(const ReorderDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireBlocked(desc));
  if (desc.src.data_type() != desc.dst.data_type()) return Unimplemented("types differ");
  if (desc.dst.HasCompensation()) return Unimplemented("dst carries compensation");
  return RequireNoPostOps(attributes);
}

absl::Status RequireSumAtMost(const ReorderDesc& desc, const Attributes& attributes) {
  if (desc.dst.HasCompensation()) return Unimplemented("dst carries compensation");
  const auto entries = attributes.post_ops.entries();
  if (entries.empty()) return absl::OkStatus();
  if (entries.size() == 1 && std::holds_alternative<SumPostOp>(entries[0])) return absl::OkStatus();
  return Unimplemented("post-ops other than one sum");
}

}  // namespace reorder

TILEWIRE_DEFINE_PRIMITIVE(
    Reorder, reorder,
    {kAnyCpu,
     {{"compensated", ResolveCompensated, CreateCompensated, {.algorithm = kCompensated}}}},
    {{cpu::Isa::kAvx512},
     {{"planes", ResolvePlaneWeights, CreatePlaneWeights, {.algorithm = kPlaneWeights}}}},
    {kAvx512AndAvx2,
     {{"dense", ResolveDense, CreateDense, {.algorithm = kDense}},
      {"blocking", ResolveChannelBlocking, CreateChannelBlocking, {.algorithm = kChannelBlocking}},
      {"weights", ResolveWeightsPacking, CreateWeightsPacking, {.algorithm = kWeightsPacking}},
      {"winograd_weights",
       ResolveGeneratedWinograd,
       CreateGeneratedWinograd,
       {.algorithm = kWinogradWeights}}}},
    {kAnyCpu,
     {{"winograd_weights",
       ResolveWinogradWeights,
       CreateWinogradWeights,
       {.algorithm = kWinogradWeights}},
      {"blocked_copy", ResolveBlockedCopy, CreateBlockedCopy, {.algorithm = kBlockedCopy}},
      {"reference", ResolveReference, CreateReference, {.is_reference = true}}}});

}  // namespace tilewire
