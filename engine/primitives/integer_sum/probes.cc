// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/integer_sum/integer_sum.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<IntegerSumDesc> IntegerSumProbes(DataType type) {
  const MemoryDesc image = probes::Tagged({2, 32, 8, 8}, type, "nhwc");
  return {IntegerSumDesc{{image, image}, image, {0.5f, 0.25f}, {3, 0}, 0.5f, 1}};
}

}  // namespace tilewire
