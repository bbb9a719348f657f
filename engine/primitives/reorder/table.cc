// SPDX-License-Identifier: Apache-2.0
#include <variant>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
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

absl::Status RequireLayoutAlone(const ReorderDesc& desc) {
  if (desc.dst.HasCompensation()) return Unimplemented("dst carries compensation");
  if (desc.dst.IsBounded()) return Unimplemented("the elements of dst are bounded");
  return absl::OkStatus();
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
  ABSL_RETURN_IF_ERROR(RequireLayoutAlone(desc));
  return RequireNoPostOps(attributes);
}

absl::Status RequireSumAtMost(const ReorderDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireLayoutAlone(desc));
  const auto entries = attributes.post_ops.entries();
  if (entries.empty()) return absl::OkStatus();
  if (entries.size() == 1 && std::holds_alternative<SumPostOp>(entries[0])) return absl::OkStatus();
  return Unimplemented("post-ops other than one sum");
}

absl::StatusOr<std::shared_ptr<const Primitive>> CreateCopyInside(
    const Request<ReorderDesc>& request, const MemoryDesc& dst) {
  Attributes attributes = request.attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  return CreateReorder({.src = request.desc.src, .dst = dst}, attributes, {});
}

}  // namespace reorder

std::vector<ReorderDesc> ReorderProbes(DataType type) {
  std::vector<ReorderDesc> descs;
  for (DataType to : {type, DataType::kF32, DataType::kS8}) {
    for (absl::string_view from_tag : probes::kImageTags) {
      for (absl::string_view to_tag : probes::kImageTags) {
        const Dims dims = {2, 32, 8, 8};
        descs.push_back(
            ReorderDesc{probes::Tagged(dims, type, from_tag), probes::Tagged(dims, to, to_tag)});
      }
    }
    if (to == DataType::kS8) {
      const MemoryDesc packed =
          probes::Tagged({32, 32, 3, 3}, to, "OIhw4i16o4i").WithCompensation(1).value();
      descs.push_back(ReorderDesc{probes::Tagged(packed.dims(), type, "oihw"), packed});
      if (type == to) descs.push_back(ReorderDesc{descs.back().src, packed.WithBound(64).value()});
    }
    for (absl::string_view tag : {"OIhw16i16o", "OIhw8i8o"}) {
      const Dims dims = {32, 32, 3, 3};
      descs.push_back(
          ReorderDesc{probes::Tagged(dims, type, "oihw"), probes::Tagged(dims, to, tag)});
    }
    for (int lanes : {16, 8}) {
      const WinogradLayout winograd{.tile = 4, .lanes = lanes, .panel_blocks = 2};
      const Dims dims = {32, 32, 3, 3};
      descs.push_back(ReorderDesc{probes::Tagged(dims, type, "oihw"),
                                  MemoryDesc::CreateWinograd(dims, winograd).value()});
    }
    const MemoryDesc numbers = probes::Tagged({32, 32, 3, 3}, DataType::kF32, "OIhw16i16o");
    const PlaneLayout planes = {
        .planes = 1, .matrices = 1, .outputs = 32, .taps = 9, .channels = 32};
    descs.push_back(ReorderDesc{probes::Tagged(numbers.dims(), type, "oihw"),
                                MemoryDesc::CreatePlanes(numbers, planes).value()});
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(
    Reorder, reorder,
    {kAnyCpu,
     {{"bounded", ResolveBounded, CreateBounded, {.algorithm = kBounded}},
      {"compensated", ResolveCompensated, CreateCompensated, {.algorithm = kCompensated}}}},
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
      {"blocked_copy", ResolveBlockedCopy, CreateBlockedCopy, {.algorithm = kBlockedCopy}}}});

}  // namespace tilewire
