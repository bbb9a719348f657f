// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/quantize/quantize.h"

namespace tilewire {

std::vector<QuantizeDesc> QuantizeProbes(DataType type) {
  std::vector<QuantizeDesc> descs;
  const MemoryDesc range = probes::Tagged({2}, DataType::kF32, "x");
  for (DataType to : {DataType::kU8, DataType::kF32}) {
    for (absl::string_view tag : probes::kImageTags) {
      const Dims dims = {2, 32, 8, 8};
      descs.push_back(QuantizeDesc{
          probes::Tagged(dims, type, tag), probes::Tagged(dims, to, tag), 1, {0.5f}, {3}});
      descs.push_back(QuantizeDesc{.src = probes::Tagged(dims, type, tag),
                                   .dst = probes::Tagged(dims, to, tag),
                                   .axis = 0,
                                   .scales = {},
                                   .zero_points = {},
                                   .range = range});
    }
  }
  return descs;
}

}  // namespace tilewire
