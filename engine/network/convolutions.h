// SPDX-License-Identifier: Apache-2.0
//
// The operations that slide a window over the spatial dimensions of a tensor and sum up products
// with weights. Shapes are in logical order [N, C, spatial...]; dilations count from 0 (dense),
// unlike ONNX.
#ifndef ENGINE_NETWORK_CONVOLUTIONS_H_
#define ENGINE_NETWORK_CONVOLUTIONS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/memory/dims.h"
#include "engine/network/fused_step.h"
#include "engine/network/quantization_params.h"
#include "engine/network/weights.h"

namespace tilewire::network {

// A source or result with quantization params holds integers that stand for the real numbers of the
// formula (padding is real 0); the weights of such a source are s8.
struct Convolution {
  Weights weights;
  std::vector<float> bias;  // [O], or empty; batch norms are folded in
  int64_t groups = 1;
  Dims strides, dilations, padding_left, padding_right;
  std::vector<FusedStep> fused;
  std::optional<QuantizationParams> src_quantization, dst_quantization;
  std::optional<FusedPooling> pooling;  // after `fused`; dst is its result
  bool sums_integers = false;           // no algorithm that rounds their sums may be taken
};
// A convolution whose weights [O, I/groups, k...], and bias [O] if it has one, are computed: its
// sources are src, weights, bias. The rest is as in Convolution.
struct ComputedConvolution {
  int64_t groups = 1;
  Dims strides, dilations, padding_left, padding_right;
};
// Every element of src is spread over dst by the window, as deconvolution.h in engine/primitives
// says. Its sources are real numbers.
struct Deconvolution {
  Weights weights;  // [O, I/groups, k...]
  std::vector<float> bias;
  int64_t groups = 1;
  Dims strides, dilations, padding_left, padding_right;
  std::vector<FusedStep> fused;
};
// A deconvolution whose weights, and bias [O] if it has one, are computed: its sources are src,
// weights, bias. The weights [I, O/groups, k...] are those of the convolution of which it is the
// gradient by src, but for the bias; so is the result, whose last elements may be beyond all
// windows.
struct ComputedDeconvolution {
  ComputedConvolution convolution;
};
// A convolution of u8 whose scale and zero point are computed. Its sources are the real numbers and
// a QuantizationRange; the numbers are quantized by it, as by DynamicQuantize, and
//   dst = bias + scale * sum of (quantized - zero point) * effective weight
struct DynamicConvolution {
  Weights weights;  // s8
  std::vector<float> bias;
  int64_t groups = 1;
  Dims strides, dilations, padding_left, padding_right;
  std::vector<FusedStep> fused;
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_CONVOLUTIONS_H_
