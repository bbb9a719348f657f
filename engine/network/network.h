// SPDX-License-Identifier: Apache-2.0
//
// A model specialised to concrete input shapes: operations that the engine has primitives for, in
// an order in which they can run. The passes rewrite it, and lowering turns it into a plan. It
// contains no layouts and no kernels: every shape is in logical order [N, C, spatial...]. Immutable
// after the passes.
#ifndef ENGINE_NETWORK_NETWORK_H_
#define ENGINE_NETWORK_NETWORK_H_

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/functions/function.h"
#include "engine/memory/data_type.h"
#include "engine/memory/dims.h"
#include "engine/network/constant.h"
#include "engine/network/convolutions.h"
#include "engine/network/elementwise.h"
#include "engine/network/fused_step.h"
#include "engine/network/gradient_operations.h"
#include "engine/network/loss.h"
#include "engine/network/movement.h"
#include "engine/network/normalization.h"
#include "engine/network/parameter.h"
#include "engine/network/pooling.h"
#include "engine/network/quantization_params.h"
#include "engine/network/recurrent.h"
#include "engine/network/reduction.h"
#include "engine/network/weights.h"

namespace tilewire::network {

// A tensor that is computed or given at run time. Numbers that f32 holds exactly may be f32,
// whatever their type in the model is; f16, bf16 and truth values are f32 except where they come in
// and go out.
struct Value {
  std::string name;
  DataType type = DataType::kF32;
  Dims dims;
};

struct InnerProduct {
  Weights weights;
  std::vector<float> bias;
  std::vector<FusedStep> fused;  // src may be [N,C] or [N,C,spatial...] (a flatten was folded in,
                                 // in logical nchw order)
  std::optional<QuantizationParams> src_quantization, dst_quantization;
};
// The same as DynamicConvolution for the rows of src, whatever its leading dimensions:
//   dst[..., o] = bias[o] + scale * sum over i of (quantized[..., i] - zero point) * weight[o, i]
struct DynamicInnerProduct {
  Weights weights;  // s8
  std::vector<float> bias;
  std::vector<FusedStep> fused;  // no sums
};
struct Activation {
  functions::EltwiseOp op;
};
struct Quantize {  // f32 to u8 or s8; one entry in `params`, or one per index of `axis`
  int axis = 0;
  std::vector<QuantizationParams> params = {QuantizationParams()};
  bool operator==(const Quantize&) const = default;
};
struct QuantizationRange {};  // of src: dst is [2], the scale and the zero point of u8
struct DynamicQuantize {};    // f32 to u8; srcs are the numbers and a QuantizationRange
struct Dequantize {           // u8, s8, or integers held in f32, to f32
  int axis = 0;
  std::vector<QuantizationParams> params = {QuantizationParams()};
};
// src * scale + shift of u8 or s8, in f32; one of each, or one per index of `axis`.
struct ScaleBytes {
  int axis = 0;
  std::vector<float> scale, shift;
};
// Adds the real numbers that 8-bit integers stand for, in the order of srcs, applies a Relu if
// `relu`, and quantizes the sum to dst's params. Shapes are equal; types may differ.
struct IntegerSum {
  std::vector<QuantizationParams> src_quantization;
  QuantizationParams dst_quantization;
  bool relu = false;
};
struct Softmax {
  int axis = 1;
};
struct Sum {};           // of all srcs, elementwise, same shapes
struct Literal {         // the same elements in every run; no source
  ConstantPtr constant;  // of floats
};
// srcs are [..., M, K] and [..., K, N] of dst's rank; the leading dimensions are broadcast.
struct Matmul {};
// The same of the real numbers that 8-bit integers stand for. dst is of integers where it has
// params; else of real numbers, or of s32, which holds the sums themselves of integers less their
// zero points: scales are then 1.
struct IntegerMatmul {
  QuantizationParams src_quantization, weights_quantization;
  std::optional<QuantizationParams> dst_quantization;
};
// The same of u8 whose scales and zero points are computed: srcs are the two matrices, each
// followed by its QuantizationRange. dst is of real numbers: sums times both scales and `scale`.
struct DynamicMatmul {
  float scale = 1;
};
// softmax(scale * q k + masks) v. srcs are q [...,M,D], k [...,D,N], turned as Matmul takes it,
// v [...,N,E], and masks for scores [...,M,N], as FoldHeads() (attention.h) takes them.
struct Attention {
  float scale = 1;
};
// The largest (or smallest) elements along one axis, or their indices as numbers, best first; dst's
// size along the axis says how many. Ties go to the first, or the last; NaN is larger than any
// number.
struct TopK {
  int axis = 0;
  bool largest = true, indices = false, last_of_equals = false;
};
// Along one dimension:
//   dst[.., i, ..] = sum over t < taps of
//                    weights[i * taps + t] * src[.., indices[i * taps + t], ..]
struct Interpolate {
  int axis = 2;
  int64_t taps = 2;
  std::vector<int64_t> indices;
  std::vector<float> weights;
};

// Regions of srcs[0], pooled to bins of one size (engine/primitives/roi_align/roi_align.h).
// srcs: images [N, C, H, W], regions [R, 4], the image of each [R] in s64.
struct RoiAlign {
  bool takes_maximum = false;
  bool aligned = true;
  float scale = 1;
  int64_t samples_per_bin = 0;  // each way; 0: by the size of the region
};

using OperationParams = std::variant<
    Convolution, ComputedConvolution, Deconvolution, ComputedDeconvolution, DynamicConvolution,
    InnerProduct, DynamicInnerProduct, Pooling, MaxWindow, Activation, Softmax, Sum, Concat,
    Shuffle, Reshape, Convert, Transpose, Select, Literal, Elementwise, Reduce, Interpolate, Lrn,
    LayerNormalization, BatchNormalization, Matmul, TopK, Rnn, RoiAlign, GatherChannels, Gather,
    Quantize, QuantizationRange, DynamicQuantize, Dequantize, ScaleBytes, IntegerSum, IntegerMatmul,
    DynamicMatmul, Attention, ConvolutionDataGradient, ConvolutionWeightsGradient, MatmulGradient,
    ActivationGradient, PoolingGradient, SoftmaxGradient, BatchNormalizationGradient,
    LayerNormalizationGradient, LrnGradient, ReduceGradient, GatherGradient, Loss>;

struct Operation {
  std::string name;  // of the ONNX node it came from (the first of a fused chain)
  OperationParams params;
  std::vector<ValueId> srcs;  // without the addends of fused sums
  ValueId dst = kNoValue;
  std::vector<ValueId> more_dsts;  // further results of an operation that has several
};

struct Network {
  std::vector<Value> values;
  std::vector<Operation> operations;  // topological order
  std::vector<ValueId> inputs;        // in the model's order; then masks
  std::vector<ValueId> outputs;       // may name an input or one value twice
  std::vector<Dims> output_dims;      // as in the model: without dimensions where a value has [1]
  std::vector<Parameter> parameters;  // none for inference
  std::vector<RunningStatistics> statistics;  // in the order of their operations
  std::vector<DropoutMask> masks;             // the same; none but for updates
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_NETWORK_H_
