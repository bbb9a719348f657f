// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/concat/concat.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<ConcatDesc> ConcatProbes(DataType type) {
  std::vector<ConcatDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    for (int64_t channels : {32, 20}) {
      const MemoryDesc src = probes::Tagged({2, channels, 8, 8}, type, tag);
      descs.push_back(
          ConcatDesc{1, {src, src}, probes::Tagged({2, 2 * channels, 8, 8}, type, tag)});
    }
  }
  return descs;
}

}  // namespace tilewire
