// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/gather/gather.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<GatherDesc> GatherProbes(DataType type) {
  return {GatherDesc{0, probes::Tagged({40, 32}, type, "nc"),
                     probes::Tagged({3, 5}, DataType::kF32, "nc"), probes::Any({3, 5, 32}, type)}};
}

}  // namespace tilewire
