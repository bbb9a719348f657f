// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/layer_normalization/layer_normalization.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<LayerNormalizationDesc> LayerNormalizationProbes(DataType type) {
  LayerNormalizationDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32}, type, "nc");
  return {desc};
}

}  // namespace tilewire
