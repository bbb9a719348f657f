// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/roi_align/roi_align.h"

namespace tilewire {

std::vector<RoiAlignDesc> RoiAlignProbes(DataType type) {
  std::vector<RoiAlignDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    RoiAlignDesc desc;
    desc.src = probes::Tagged({2, 32, 14, 14}, type, tag);
    desc.rois = probes::Tagged({3, 4}, DataType::kF32, "nc");
    desc.batches = probes::Tagged({3}, DataType::kS64, "x");
    desc.dst = probes::Any({3, 32, 7, 7}, type);
    descs.push_back(desc);
  }
  return descs;
}

}  // namespace tilewire
