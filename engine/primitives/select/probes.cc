// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/select/select.h"

namespace tilewire {

std::vector<SelectDesc> SelectProbes(DataType type) {
  std::vector<SelectDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    descs.push_back(SelectDesc{probes::Tagged({2, 32, 8, 8}, type, tag),
                               probes::Tagged({2, 10, 8, 9}, type, tag),
                               {{}, {{3, 1, 10}}, {}, {{0, 1, 8}, {-1, 1, 1}}}});
  }
  return descs;
}

}  // namespace tilewire
