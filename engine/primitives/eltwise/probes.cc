// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/eltwise/eltwise.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<EltwiseDesc> EltwiseProbes(DataType type) {
  EltwiseDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  return {desc};
}

}  // namespace tilewire
