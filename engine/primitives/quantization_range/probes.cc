// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/quantization_range/quantization_range.h"

namespace tilewire {

std::vector<QuantizationRangeDesc> QuantizationRangeProbes(DataType type) {
  std::vector<QuantizationRangeDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    descs.push_back(
        {probes::Tagged({2, 32, 8, 8}, type, tag), probes::Tagged({2}, DataType::kF32, "x")});
  }
  return descs;
}

}  // namespace tilewire
