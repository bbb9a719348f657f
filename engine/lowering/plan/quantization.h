// SPDX-License-Identifier: Apache-2.0
#ifndef ENGINE_LOWERING_PLAN_QUANTIZATION_H_
#define ENGINE_LOWERING_PLAN_QUANTIZATION_H_

#include <vector>

#include "engine/network/quantization_params.h"

namespace tilewire::lowering {

// Appends to the lists `scales` and `zero_points` of a descriptor.
template <typename Desc>
void AppendParams(const std::vector<network::QuantizationParams>& all, Desc* desc) {
  for (const network::QuantizationParams& params : all) {
    desc->scales.push_back(params.scale);
    desc->zero_points.push_back(params.zero_point);
  }
}

}  // namespace tilewire::lowering

#endif  // ENGINE_LOWERING_PLAN_QUANTIZATION_H_
