// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/shuffle/shuffle.h"

namespace tilewire {

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

}  // namespace tilewire
