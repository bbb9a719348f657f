// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/reduction/reduction.h"

namespace tilewire {

std::vector<ReductionDesc> ReductionProbes(DataType type) {
  return probes::Images<ReductionDesc>(type, {2, 32, 1, 1});
}

}  // namespace tilewire
