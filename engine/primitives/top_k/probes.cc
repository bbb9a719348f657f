// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/top_k/top_k.h"

namespace tilewire {

std::vector<TopKDesc> TopKProbes(DataType type) {
  return {TopKDesc{probes::Tagged({8, 100}, type, "nc"), probes::Tagged({8, 5}, type, "nc"), 1}};
}

}  // namespace tilewire
