// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/batch_normalization/batch_normalization.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<BatchNormalizationDesc> BatchNormalizationProbes(DataType type) {
  return probes::Images<BatchNormalizationDesc>(type, {2, 32, 8, 8});
}

}  // namespace tilewire
