// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/resampling/resampling.h"

namespace tilewire {

std::vector<ResamplingDesc> ResamplingProbes(DataType type) {
  return probes::Images<ResamplingDesc>(type, {2, 32, 16, 16});
}

}  // namespace tilewire
