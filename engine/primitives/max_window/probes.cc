// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/max_window/max_window.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<MaxWindowDesc> MaxWindowProbes(DataType type) {
  MaxWindowDesc desc;
  desc.result = MaxWindowResult::kIndex;
  desc.src = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  desc.dst = probes::Tagged({2, 32, 4, 4}, type, "nchw");
  desc.kernel = desc.strides = {2, 2};
  desc.dilations = desc.padding_left = {0, 0};
  return {desc};
}

}  // namespace tilewire
