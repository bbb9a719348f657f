// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/lowering/interpreter.h"

#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "engine/primitives/primitives.h"
#include "tests/support/loop_operations.h"
#include "tests/support/window_operations.h"

namespace tilewire::graph {
namespace {

using Tensor = std::vector<float>;

MemoryDesc RowMajor(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (int d = static_cast<int>(dims.size()) - 2; d >= 0; --d)
    strides[d] = strides[d + 1] * dims[d + 1];
  return MemoryDesc::CreateStrided(dims, DataType::kF32, strides).value();
}

Tensor Effective(const Weights& weights) {
  const HeldFloats held = LoadElements(weights).value();
  const int64_t outputs = weights.dims[0],
                inputs = static_cast<int64_t>(held.values.size()) / outputs;
  Tensor effective(held.values.size());
  for (int64_t o = 0; o < outputs; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      const float stored = held.values[weights.transposed ? i * outputs + o : o * inputs + i];
      effective[o * inputs + i] = stored * (weights.scale.empty() ? 1.0f : weights.scale[o]);
    }
  }
  return effective;
}

class Interpreter {
 public:
  explicit Interpreter(const Network& network)
      : network_(network), tensors_(network.values.size()) {}

  std::vector<Tensor> Run(const std::vector<Tensor>& inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) tensors_[network_.inputs[i]] = inputs[i];
    for (const Operation& op : network_.operations) {
      tensors_[op.dst].resize(*ElementCount(dims(op.dst)));
      std::visit([&](const auto& params) { Do(op, params); }, op.params);
    }
    std::vector<Tensor> outputs;
    for (ValueId output : network_.outputs) outputs.push_back(tensors_[output]);
    return outputs;
  }

 private:
  const Dims& dims(ValueId id) const { return network_.values[id].dims; }
  MemoryDesc Desc(ValueId id) const { return RowMajor(dims(id)); }

  void Execute(const Operation& op, const OpDesc& desc, ExecuteArgs args) {
    const auto primitive = CreatePrimitive(desc, {}, {.reference_only = true}).value();
    args.Set(kArgDst, tensors_[op.dst].data());
    if (!primitive->Execute(args, threading::Team::Serial()).ok()) std::abort();
  }

  ExecuteArgs Source(const Operation& op) {
    ExecuteArgs args;
    args.Set(kArgSrc, tensors_[op.srcs[0]].data());
    return args;
  }

  void Fused(const Operation& op, const std::vector<FusedStep>& steps,
             const std::optional<QuantizationParams>& params) {
    Tensor& dst = tensors_[op.dst];
    for (const FusedStep& step : steps) {
      for (size_t i = 0; i < dst.size(); ++i) {
        dst[i] = step.kind == FusedStep::Kind::kSum
                     ? dst[i] + Real(tensors_[step.addend][i], step.quantization)
                     : jit::EltwiseScalar(step.activation, dst[i]);
      }
    }
    for (float& element : dst) {
      if (params) element = QuantizeElement(element, *params, network_.values[op.dst].type);
    }
  }

  static float Real(float element, const std::optional<QuantizationParams>& params) {
    return params ? DequantizeElement(element, *params) : element;
  }
  // The source as real numbers.
  Tensor RealSource(const Operation& op, const std::optional<QuantizationParams>& params) const {
    Tensor src = tensors_[op.srcs[0]];
    for (float& element : src) element = Real(element, params);
    return src;
  }

  void Do(const Operation& op, const Quantize& params) {
    tensors_[op.dst] = tensors_[op.srcs[0]];
    for (float& element : tensors_[op.dst])
      element = QuantizeElement(element, params.params[0], network_.values[op.dst].type);
  }
  void Do(const Operation& op, const Dequantize& params) {
    tensors_[op.dst] = RealSource(op, params.params[0]);
  }

  void Do(const Operation& op, const IntegerSum& params) {
    Tensor& dst = tensors_[op.dst];
    dst.assign(tensors_[op.srcs[0]].size(), 0.0f);
    for (size_t s = 0; s < op.srcs.size(); ++s) {
      for (size_t i = 0; i < dst.size(); ++i)
        dst[i] += DequantizeElement(tensors_[op.srcs[s]][i], params.src_quantization[s]);
    }
    for (float& element : dst) {
      const float real = params.relu ? std::max(element, 0.0f) : element;
      element = QuantizeElement(real, params.dst_quantization, network_.values[op.dst].type);
    }
  }

  void Do(const Operation& op, const Convolution& params) {
    Dims weights_dims = params.weights.dims;
    if (params.groups > 1) {
      weights_dims[0] /= params.groups;
      weights_dims.insert(weights_dims.begin(), params.groups);
    }
    const Tensor weights = Effective(params.weights);
    const MemoryDesc result = params.pooling ? RowMajor(params.pooling->src) : Desc(op.dst);
    tensors_[op.dst].resize(result.ElementCount());
    ConvolutionDesc desc{.src = Desc(op.srcs[0]), .weights = RowMajor(weights_dims), .dst = result};
    if (!params.bias.empty())
      desc.bias = RowMajor({weights_dims[0] * (params.groups > 1 ? weights_dims[1] : 1)});
    desc.strides = params.strides;
    desc.dilations = params.dilations;
    desc.padding_left = params.padding_left;
    desc.padding_right = params.padding_right;
    const Tensor src = RealSource(op, params.src_quantization);
    ExecuteArgs args;
    args.Set(kArgSrc, src.data());
    Execute(op, desc, args.Set(kArgWeights, weights.data()).Set(kArgBias, params.bias.data()));
    Fused(op, params.fused, params.dst_quantization);
    if (!params.pooling) return;
    const Tensor unpooled = std::exchange(tensors_[op.dst], Tensor(Desc(op.dst).ElementCount()));
    ExecuteArgs pooled;
    Execute(op,
            PoolingDesc{.src = result,
                        .dst = Desc(op.dst),
                        .kernel = {2, 2},
                        .strides = {2, 2},
                        .padding_left = {0, 0},
                        .padding_right = {0, 0}},
            pooled.Set(kArgSrc, unpooled.data()));
  }

  void Do(const Operation& op, const InnerProduct& params) {
    Dims weights_dims = dims(op.srcs[0]);
    weights_dims[0] = dims(op.dst)[1];
    const Tensor weights = Effective(params.weights);
    InnerProductDesc desc{
        .src = Desc(op.srcs[0]), .weights = RowMajor(weights_dims), .dst = Desc(op.dst)};
    if (!params.bias.empty()) desc.bias = RowMajor({weights_dims[0]});
    const Tensor src = RealSource(op, params.src_quantization);
    ExecuteArgs args;
    args.Set(kArgSrc, src.data());
    Execute(op, desc, args.Set(kArgWeights, weights.data()).Set(kArgBias, params.bias.data()));
    Fused(op, params.fused, params.dst_quantization);
  }

  void Do(const Operation& op, const Pooling& params) {
    PoolingDesc desc{.src = Desc(op.srcs[0]), .dst = Desc(op.dst), .kernel = params.kernel};
    desc.algorithm = params.algorithm == Pooling::Algorithm::kMax ? PoolingAlgorithm::kMax
                     : params.algorithm == Pooling::Algorithm::kAvgIncludePadding
                         ? PoolingAlgorithm::kAvgIncludePadding
                         : PoolingAlgorithm::kAvgExcludePadding;
    desc.strides = params.strides;
    desc.padding_left = params.padding_left;
    desc.padding_right = params.padding_right;
    Execute(op, desc, Source(op));
  }

  void Do(const Operation& op, const Activation& params) {
    const Tensor& src = tensors_[op.srcs[0]];
    for (size_t i = 0; i < src.size(); ++i)
      tensors_[op.dst][i] = jit::EltwiseScalar(params.op, src[i]);
  }

  void Do(const Operation& op, const Softmax& params) {
    Execute(op, SoftmaxDesc{.src = Desc(op.srcs[0]), .dst = Desc(op.dst), .axis = params.axis},
            Source(op));
  }

  void Do(const Operation& op, const Sum&) {
    for (ValueId src : op.srcs) {
      for (size_t i = 0; i < tensors_[op.dst].size(); ++i) tensors_[op.dst][i] += tensors_[src][i];
    }
  }

  void Do(const Operation& op, const Concat& params) {
    ConcatDesc desc{.axis = params.axis, .dst = Desc(op.dst)};
    ExecuteArgs args;
    for (size_t i = 0; i < op.srcs.size(); ++i) {
      desc.srcs.push_back(Desc(op.srcs[i]));
      args.Set(kArgMultipleSrc + static_cast<int>(i), tensors_[op.srcs[i]].data());
    }
    Execute(op, desc, args);
  }

  void Do(const Operation& op, const Shuffle& params) {
    Execute(op,
            ShuffleDesc{.src = Desc(op.srcs[0]),
                        .dst = Desc(op.dst),
                        .axis = params.axis,
                        .group_size = params.group_size},
            Source(op));
  }

  void Do(const Operation& op, const Reshape&) { tensors_[op.dst] = tensors_[op.srcs[0]]; }

  void Do(const Operation& op, const Transpose& params) {
    const Dims src_strides = Desc(op.srcs[0]).strides(), dst_strides = Desc(op.dst).strides();
    for (size_t i = 0; i < tensors_[op.dst].size(); ++i) {
      int64_t from = 0;
      for (size_t d = 0; d < params.order.size(); ++d) {
        from += static_cast<int64_t>(i) / dst_strides[d] % dims(op.dst)[d] *
                src_strides[params.order[d]];
      }
      tensors_[op.dst][i] = tensors_[op.srcs[0]][from];
    }
  }

  testing::Shaped<Tensor> Shaped(ValueId id) const { return {tensors_[id], dims(id)}; }
  void Do(const Operation& op, const Select& params) {
    testing::DoSelect(params, Shaped(op.srcs[0]), dims(op.dst), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const Literal& params) {
    tensors_[op.dst].assign(params.constant->floats.begin(), params.constant->floats.end());
  }
  void Do(const Operation& op, const Elementwise& params) {
    std::vector<testing::Shaped<Tensor>> srcs;
    for (ValueId src : op.srcs) srcs.push_back(Shaped(src));
    testing::DoElementwise(params, srcs, dims(op.dst), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const GatherChannels& params) {
    std::vector<testing::Shaped<Tensor>> srcs;
    for (ValueId src : op.srcs) srcs.push_back(Shaped(src));
    testing::DoGatherChannels(params, srcs, dims(op.dst), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const Gather& params) {
    testing::DoGather(params, Shaped(op.srcs[0]), Shaped(op.srcs[1]), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const ComputedConvolution& params) {
    std::vector<testing::Shaped<Tensor>> srcs;
    for (ValueId src : op.srcs) srcs.push_back(Shaped(src));
    testing::DoComputedConvolution(params, srcs, dims(op.dst), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const MaxWindow& params) {
    testing::DoMaxWindow(params, Shaped(op.srcs[0]), dims(op.dst), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const Lrn& params) {
    testing::DoLrn(params, Shaped(op.srcs[0]), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const LayerNormalization& params) {
    testing::DoLayerNormalization(params, Shaped(op.srcs[0]), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const Matmul&) {
    testing::DoMatmul(Shaped(op.srcs[0]), Shaped(op.srcs[1]), dims(op.dst), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const TopK& params) {
    testing::DoTopK(params, Shaped(op.srcs[0]), dims(op.dst), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const Reduce& params) {
    testing::DoReduce(params, Shaped(op.srcs[0]), dims(op.dst), &tensors_[op.dst]);
  }
  void Do(const Operation& op, const Interpolate& params) {
    testing::DoInterpolate(params, Shaped(op.srcs[0]), dims(op.dst), &tensors_[op.dst]);
  }

  const Network& network_;
  std::vector<Tensor> tensors_;
};

}  // namespace

std::vector<Tensor> Interpret(const Network& network, const std::vector<Tensor>& inputs) {
  return Interpreter(network).Run(inputs);
}

}  // namespace tilewire::graph
