// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/lowering/network_builder.h"

#include <cmath>
#include <memory>

#include "tests/support/random_tensor.h"

namespace tilewire::network {
namespace {

Weights MakeWeights(const std::string& name, Dims dims, bool scale, bool transposed) {
  const int64_t count = *ElementCount(dims);
  const float bound = std::sqrt(6.0f * dims[0] / count);
  auto owner =
      std::make_shared<std::vector<float>>(PseudoRandom(name + ".weight", count, -bound, bound));
  Weights weights{.key = name + ".weight",
                  .dims = dims,
                  .data = *owner,
                  .owner = owner,
                  .transposed = transposed};
  if (scale) weights.scale = PseudoRandom(name + ".scale", dims[0], 0.5f, 1.5f);
  return weights;
}

int64_t OutputSize(int64_t in, int64_t padding, int64_t extent, int64_t stride) {
  return (in + 2 * padding - extent) / stride + 1;
}

// Adds a spatial dimension to a convolution or a deconvolution.
template <typename Windowed>
void AddDimension(const ConvolutionOptions& options, Windowed* windowed) {
  windowed->strides.push_back(options.stride);
  windowed->dilations.push_back(options.dilation);
  windowed->padding_left.push_back(options.padding);
  windowed->padding_right.push_back(options.padding);
}

}  // namespace

std::vector<float> PseudoRandom(const std::string& name, int64_t count, float from, float to) {
  uint64_t seed = 0xCBF29CE484222325ull;  // FNV-1a
  for (unsigned char letter : name) seed = (seed ^ letter) * 0x100000001B3ull;
  return testing::RandomFloats(count, seed, from, to);
}

FusedStep Relu() { return {.activation = {functions::EltwiseAlgorithm::kRelu}}; }
FusedStep Add(ValueId addend) { return {.kind = FusedStep::Kind::kSum, .addend = addend}; }

ValueId NetworkBuilder::AddValue(const std::string& name, Dims dims) {
  network_.values.push_back({name, DataType::kF32, std::move(dims)});
  return static_cast<ValueId>(network_.values.size()) - 1;
}

ValueId NetworkBuilder::AddOperation(const std::string& name, OperationParams params,
                                     std::vector<ValueId> srcs, Dims dims, DataType type) {
  const ValueId dst = AddValue(name + ".out", std::move(dims));
  SetType(dst, type);
  network_.operations.push_back({name, std::move(params), std::move(srcs), dst});
  return dst;
}

ValueId NetworkBuilder::AddResult(const std::string& name, Dims dims) {
  last().more_dsts.push_back(AddValue(name, std::move(dims)));
  return last().more_dsts.back();
}

ValueId NetworkBuilder::Input(const std::string& name, Dims dims) {
  network_.inputs.push_back(AddValue(name, std::move(dims)));
  return network_.inputs.back();
}

ValueId NetworkBuilder::Conv(const std::string& name, ValueId src, int64_t channels,
                             ConvolutionOptions options) {
  const Dims& in = dims(src);
  Convolution convolution{.groups = options.groups, .fused = options.fused};
  Dims weights = {channels, in[1] / options.groups}, out = {in[0], channels};
  const int64_t extent = (options.kernel - 1) * (options.dilation + 1) + 1;
  for (size_t d = 2; d < in.size(); ++d) {
    weights.push_back(options.kernel);
    out.push_back(OutputSize(in[d], options.padding, extent, options.stride));
    AddDimension(options, &convolution);
  }
  convolution.weights = MakeWeights(name, weights, options.scale, /*transposed=*/false);
  if (options.bias) convolution.bias = PseudoRandom(name + ".bias", channels, -0.5f, 0.5f);
  if (options.pool) {
    convolution.pooling = FusedPooling{name + ".pool", out};
    for (int d = 2; d < 4; ++d) out[d] /= 2;
  }
  return AddOperation(name, std::move(convolution), {src}, out);
}

ValueId NetworkBuilder::Deconv(const std::string& name, ValueId src, int64_t channels,
                               ConvolutionOptions options) {
  const Dims& in = dims(src);
  Deconvolution deconvolution{.fused = options.fused};
  Dims weights = {channels, in[1]}, out = {in[0], channels};
  for (size_t d = 2; d < in.size(); ++d) {
    weights.push_back(options.kernel);
    out.push_back((in[d] - 1) * options.stride + (options.kernel - 1) * (options.dilation + 1) + 1 -
                  2 * options.padding);
    AddDimension(options, &deconvolution);
  }
  deconvolution.weights = MakeWeights(name, weights, options.scale, /*transposed=*/false);
  if (options.bias) deconvolution.bias = PseudoRandom(name + ".bias", channels, -0.5f, 0.5f);
  return AddOperation(name, std::move(deconvolution), {src}, out);
}

ValueId NetworkBuilder::Fc(const std::string& name, ValueId src, int64_t channels,
                           InnerProductOptions options) {
  const Dims& in = dims(src);
  InnerProduct product{.fused = options.fused};
  product.weights =
      MakeWeights(name, {channels, *ElementCount(in) / in[0]}, options.scale, options.transposed);
  if (options.bias) product.bias = PseudoRandom(name + ".bias", channels, -0.5f, 0.5f);
  return AddOperation(name, std::move(product), {src}, {in[0], channels});
}

ValueId NetworkBuilder::Numbers(const std::string& name, const Dims& dims) {
  std::vector<float> values;
  for (int64_t i = 0; i < *ElementCount(dims); ++i)
    values.push_back(0.25f + 0.1f * static_cast<float>(i % 7));
  return AddOperation(name, Literal{MakeFloats(name, dims, std::move(values))}, {}, dims);
}

ValueId NetworkBuilder::Pool(const std::string& name, ValueId src, Pooling::Algorithm algorithm,
                             int64_t kernel, int64_t stride, int64_t padding) {
  const Dims& in = dims(src);
  Pooling pooling{.algorithm = algorithm};
  Dims out = {in[0], in[1]};
  for (size_t d = 2; d < in.size(); ++d) {
    pooling.kernel.push_back(kernel);
    pooling.strides.push_back(stride);
    pooling.padding_left.push_back(padding);
    pooling.padding_right.push_back(padding);
    out.push_back(OutputSize(in[d], padding, kernel, stride));
  }
  return AddOperation(name, std::move(pooling), {src}, out);
}

ValueId NetworkBuilder::Normalized(const std::string& name, ValueId src) {
  const Dims in = dims(src), channels = {in[1]};
  const ValueId scale = Input(name + ".scale", channels), shift = Input(name + ".shift", channels);
  const ValueId dst = AddOperation(name, BatchNormalization{}, {src, scale, shift}, in);
  AddResult(name + ".mean", channels);
  AddResult(name + ".variance", channels);
  return dst;
}

ValueId NetworkBuilder::GlobalAverage(const std::string& name, ValueId src) {
  const Dims& in = dims(src);
  Pooling pooling{.algorithm = Pooling::Algorithm::kAvgExcludePadding};
  Dims out = {in[0], in[1]};
  for (size_t d = 2; d < in.size(); ++d) {
    pooling.kernel.push_back(in[d]);
    pooling.strides.push_back(1);
    pooling.padding_left.push_back(0);
    pooling.padding_right.push_back(0);
    out.push_back(1);
  }
  return AddOperation(name, std::move(pooling), {src}, out);
}

ValueId NetworkBuilder::Elementwise(const std::string& name, ValueId src, functions::EltwiseOp op) {
  return AddOperation(name, Activation{op}, {src}, dims(src));
}

ValueId NetworkBuilder::SumOf(const std::string& name, std::vector<ValueId> srcs) {
  const Dims out = dims(srcs[0]);
  return AddOperation(name, Sum{}, std::move(srcs), out);
}

ValueId NetworkBuilder::ConcatOf(const std::string& name, std::vector<ValueId> srcs, int axis) {
  Dims out = dims(srcs[0]);
  out[axis] = 0;
  for (ValueId src : srcs) out[axis] += dims(src)[axis];
  return AddOperation(name, Concat{.axis = axis}, std::move(srcs), out);
}

ValueId NetworkBuilder::Shuffled(const std::string& name, ValueId src, int64_t group_size) {
  return AddOperation(name, Shuffle{.axis = 1, .group_size = group_size}, {src}, dims(src));
}

ValueId NetworkBuilder::Reshaped(const std::string& name, ValueId src, Dims out) {
  return AddOperation(name, Reshape{}, {src}, std::move(out));
}

ValueId NetworkBuilder::Transposed(const std::string& name, ValueId src, std::vector<int> order) {
  Dims out;
  for (int d : order) out.push_back(dims(src)[d]);
  return AddOperation(name, Transpose{std::move(order)}, {src}, out);
}

ValueId NetworkBuilder::SoftmaxOf(const std::string& name, ValueId src, int axis) {
  return AddOperation(name, Softmax{.axis = axis}, {src}, dims(src));
}

Network NetworkBuilder::Finish(std::vector<ValueId> outputs) {
  network_.outputs = std::move(outputs);
  return std::move(network_);
}

}  // namespace tilewire::network
