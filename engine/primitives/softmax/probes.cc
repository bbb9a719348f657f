// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/softmax/softmax.h"

namespace tilewire {

std::vector<SoftmaxDesc> SoftmaxProbes(DataType type) {
  SoftmaxDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32}, type, "nc");
  SoftmaxDesc blocked;
  blocked.src = blocked.dst = probes::Tagged({2, 32, 4, 4}, type, "nChw16c");
  return {desc, blocked};
}

}  // namespace tilewire
