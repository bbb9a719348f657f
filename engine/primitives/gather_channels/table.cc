// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather_channels/gather_channels.h"
#include "engine/primitives/gather_channels/implementations.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace gather_channels {
namespace {

absl::Status ValidateSource(const GatherChannelsDesc& desc, size_t i) {
  const MemoryDesc& src = desc.srcs[i];
  ABSL_RETURN_IF_ERROR(CheckSource(absl::StrCat("gather_channels: source ", i), src));
  bool fits = src.rank() == desc.dst.rank() && src.data_type() == desc.dst.data_type();
  for (int d = 0; fits && d < src.rank(); ++d) fits = d == 1 || src.dim(d) == desc.dst.dim(d);
  if (fits) return absl::OkStatus();
  return InvalidArgument("gather_channels: source ", i, " is ", src.ToString(),
                         ", the destination ", desc.dst.ToString());
}

absl::Status Validate(const GatherChannelsDesc& desc, const Attributes&) {
  if (desc.srcs.empty()) return InvalidArgument("gather_channels: no source");
  ABSL_RETURN_IF_ERROR(CheckDestination("gather_channels: dst", desc.dst));
  if (desc.dst.rank() < 2) {
    return InvalidArgument("gather_channels: dst has no channels: ", desc.dst.ToString());
  }
  for (size_t i = 0; i < desc.srcs.size(); ++i) ABSL_RETURN_IF_ERROR(ValidateSource(desc, i));
  if (static_cast<int64_t>(desc.channels.size()) != desc.dst.dim(1)) {
    return InvalidArgument("gather_channels: ", desc.channels.size(), " entries for the ",
                           desc.dst.dim(1), " channels of dst");
  }
  for (const ChannelSource& from : desc.channels) {
    const bool is_tensor = from.tensor >= 0 && from.tensor < static_cast<int>(desc.srcs.size());
    if (is_tensor && from.channel >= 0 && from.channel < desc.srcs[from.tensor].dim(1)) continue;
    return InvalidArgument("gather_channels: no channel ", from.channel, " of a source ",
                           from.tensor);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gather_channels

std::vector<GatherChannelsDesc> GatherChannelsProbes(DataType type) {
  std::vector<GatherChannelsDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    GatherChannelsDesc desc;
    desc.srcs = {probes::Tagged({2, 20, 8, 8}, type, tag),
                 probes::Tagged({2, 12, 8, 8}, type, tag)};
    desc.dst = probes::Tagged({2, 32, 8, 8}, type, tag);
    for (int64_t c = 0; c < 32; ++c) {
      const bool is_first = c % 2 == 0;
      desc.channels.push_back({is_first ? 0 : 1, is_first ? c / 2 : c / 2 % 12});
    }
    descs.push_back(desc);
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(GatherChannels, gather_channels,
                          {kAvx512AndAvx2, {{"lanes", ResolveLanes, CreateLanes}}},
                          {kAnyCpu, {{"channel_copy", ResolveChannelCopy, CreateChannelCopy}}});

}  // namespace tilewire
