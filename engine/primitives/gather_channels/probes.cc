// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/gather_channels/gather_channels.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

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

}  // namespace tilewire
