// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/tiles/scalar_epilogue.h"

#include <cmath>
#include <variant>

#include "engine/kernels/elements/element_conversion.h"

namespace tilewire {

float ApplyPostOps(const PostOps& post_ops, float value, float before, int64_t channel) {
  for (const PostOp& entry : post_ops.entries()) {
    if (const auto* eltwise = std::get_if<EltwisePostOp>(&entry)) {
      value = eltwise->scale * functions::EltwiseScalar(eltwise->op, value);
    } else if (const auto* prelu = std::get_if<PReluPostOp>(&entry)) {
      value = value < 0 ? value * prelu->slopes[channel] : value;
    } else {
      value = std::fma(std::get<SumPostOp>(entry).scale, before, value);
    }
  }
  return value;
}

float ScalarEpilogue::Value(float sum, int64_t channel, const void* bias, int64_t bias_index,
                            float before) const {
  float value = sum;
  if (bias_type != DataType::kUndef) value += LoadElement(bias_type, bias, bias_index);
  value *= attributes.output_scales.scales[attributes.output_scales.mask == 0 ? 0 : channel];
  return ApplyPostOps(attributes.post_ops, value, before, channel);
}

float ScalarEpilogue::ScaledValue(float sum, float step, int64_t channel, const void* bias,
                                  int64_t bias_index, float before) const {
  const OutputScales& scales = attributes.output_scales;
  float value = sum * (step * scales.scales[scales.mask == 0 ? 0 : channel]);
  if (bias_type != DataType::kUndef) value += LoadElement(bias_type, bias, bias_index);
  return ApplyPostOps(attributes.post_ops, value, before, channel);
}

void ScalarEpilogue::Store(float sum, int64_t channel, const void* bias, int64_t bias_index,
                           void* dst, int64_t dst_index) const {
  const float before = attributes.post_ops.HasSum() ? LoadElement(dst_type, dst, dst_index) : 0;
  StoreElement(dst_type, Value(sum, channel, bias, bias_index, before), dst, dst_index);
}

}  // namespace tilewire
