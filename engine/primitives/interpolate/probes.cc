// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/interpolate/interpolate.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<InterpolateDesc> InterpolateProbes(DataType type) {
  std::vector<InterpolateDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    descs.push_back(InterpolateDesc{probes::Tagged({2, 32, 2, 8}, type, tag),
                                    probes::Tagged({2, 32, 3, 8}, type, tag),
                                    2,
                                    2,
                                    {0, 0, 0, 1, 1, 1},
                                    {1, 0, 0.5f, 0.5f, 0, 1}});
  }
  return descs;
}

}  // namespace tilewire
