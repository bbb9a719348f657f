// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/shuffle/implementations.h"
#include "engine/primitives/shuffle/shuffle.h"

namespace tilewire {
namespace shuffle {
namespace {

absl::Status Validate(const ShuffleDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("shuffle", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameShape("shuffle", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckAxis("shuffle", desc.axis, desc.src));
  const int64_t size = desc.src.dim(desc.axis);
  if (desc.group_size < 1 || size % desc.group_size != 0) {
    return InvalidArgument("shuffle: group size ", desc.group_size, " does not divide ", size,
                           " (axis ", desc.axis, ")");
  }
  return absl::OkStatus();
}

}  // namespace

PrimitiveInfo InfoOf(const Request<ShuffleDesc>& request) {
  const ShuffleDesc& desc = request.desc;
  std::vector<ArgDesc> args = ArgsOf(desc.src, desc.dst);
  if (desc.prop_kind == PropKind::kBackwardData) {
    args = {{kArgDiffDst, desc.src}, {kArgDiffSrc, desc.dst}};
  }
  return BasicInfo(request, std::move(args));
}

std::vector<int64_t> SourceIndices(const ShuffleDesc& desc) {
  const int64_t size = desc.src.dim(desc.axis);
  if (size == 0) return {};
  const bool backward = desc.prop_kind == PropKind::kBackwardData;
  const int64_t group = backward ? size / desc.group_size : desc.group_size;
  std::vector<int64_t> source(size);
  for (int64_t u = 0; u < size / group; ++u) {
    for (int64_t v = 0; v < group; ++v) source[v * (size / group) + u] = u * group + v;
  }
  return source;
}

}  // namespace shuffle

std::vector<ShuffleDesc> ShuffleProbes(DataType type) {
  std::vector<ShuffleDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    ShuffleDesc desc;
    desc.src = desc.dst = probes::Tagged({2, 32, 8, 8}, type, tag);
    desc.group_size = 4;
    descs.push_back(desc);
  }
  return descs;
}

// Backward is a shuffle of another group size, which every row runs.
TILEWIRE_DEFINE_PRIMITIVE_OF_ROWS(
    Shuffle, shuffle,
    {kAvx512AndAvx2,
     {{"lanes", ResolveLanes, CreateLanes, {.propagations = kForwardAndBackwardData}}}},
    {kAnyCpu,
     {{"blocked", ResolveBlocked, CreateBlocked, {.propagations = kForwardAndBackwardData}},
      {"reference",
       ResolveReference,
       CreateReference,
       {.is_reference = true, .propagations = kForwardAndBackwardData}}}});

}  // namespace tilewire
