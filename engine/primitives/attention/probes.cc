// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/attention/attention.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<AttentionDesc> AttentionProbes(DataType type) {
  const MemoryDesc heads = probes::Tagged({2, 4, 8, 16}, type, "nchw");
  return {{.srcs = {heads, heads, heads}, .dst = heads}};
}

}  // namespace tilewire
