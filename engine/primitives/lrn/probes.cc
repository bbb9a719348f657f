// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/lrn.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<LrnDesc> LrnProbes(DataType type) {
  std::vector<LrnDesc> descs;
  for (LrnAlgorithm algorithm : {LrnAlgorithm::kAcrossChannels, LrnAlgorithm::kWithinChannel}) {
    for (absl::string_view tag : probes::kImageTags) {
      const MemoryDesc image = probes::Tagged({2, 32, 8, 8}, type, tag);
      descs.push_back(LrnDesc{PropKind::kForwardInference, algorithm, image, image});
    }
  }
  return descs;
}

}  // namespace tilewire
