// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/pooling/pooling.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<PoolingDesc> PoolingProbes(DataType type) {
  std::vector<PoolingDesc> descs;
  for (PoolingAlgorithm algorithm :
       {PoolingAlgorithm::kMax, PoolingAlgorithm::kAvgIncludePadding}) {
    for (absl::string_view tag : probes::kImageTags) {
      PoolingDesc desc;
      desc.algorithm = algorithm;
      desc.src = probes::Tagged({2, 32, 8, 8}, type, tag);
      desc.dst = probes::Tagged({2, 32, 4, 4}, type, tag);
      desc.kernel = desc.strides = {2, 2};
      desc.padding_left = desc.padding_right = {0, 0};
      descs.push_back(desc);
    }
  }
  return descs;
}

}  // namespace tilewire
