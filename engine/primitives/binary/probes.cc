// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/binary/binary.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<BinaryDesc> BinaryProbes(DataType type) {
  std::vector<BinaryDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    BinaryDesc desc;
    desc.src0 = desc.dst = probes::Tagged({2, 32, 8, 8}, type, tag);
    desc.src1 = probes::Tagged({2, 32, 1, 1}, type, tag);
    descs.push_back(desc);
  }
  return descs;
}

}  // namespace tilewire
