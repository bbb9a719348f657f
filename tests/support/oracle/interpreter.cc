// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracle/interpreter.h"

#include <optional>
#include <utility>
#include <variant>

#include "engine/functions/function.h"

namespace tilewire::testing {
namespace {

using network::FusedStep;
using network::Operation;
using network::QuantizationParams;
using network::ValueId;

class Interpreter {
 public:
  Interpreter(const network::Network& network, const std::vector<Elements>& inputs,
              const AfterOperation& after, bool in_double)
      : network_(network), after_(after), in_double_(in_double), elements_(network.values.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) elements_[network.inputs[i]] = inputs[i];
    for (const network::Parameter& parameter : network.parameters) {
      const network::HeldFloats held = network::LoadNumbers(*parameter.initial).value();
      elements_[parameter.value].assign(held.values.begin(), held.values.end());
    }
  }

  std::vector<Elements> Run() {
    for (const Operation& operation : network_.operations) {
      std::vector<Elements> results = std::visit(
          [&](const auto& params) { return ExecuteAll(operation, params); }, operation.params);
      for (size_t i = 0; i < operation.more_dsts.size(); ++i)
        elements_[operation.more_dsts[i]] = std::move(results[i + 1]);
      elements_[operation.dst] = std::move(results[0]);
      if (after_ != nullptr) after_(operation, &elements_[operation.dst]);
    }
    std::vector<Elements> outputs;
    for (ValueId output : network_.outputs) outputs.push_back(elements_[output]);
    return outputs;
  }

 private:
  const Dims& dims(ValueId value) const { return network_.values[value].dims; }

  Operands OperandsOf(const Operation& operation) const {
    const network::Value& dst = network_.values[operation.dst];
    Operands operands{{}, dst.dims, dst.type};
    operands.functions_in_double = in_double_;
    for (ValueId src : operation.srcs) {
      operands.srcs.push_back({elements_[src], dims(src)});
      operands.src_types.push_back(network_.values[src].type);
    }
    return operands;
  }

  template <typename Params>
  std::vector<Elements> ExecuteAll(const Operation& operation, const Params& params) const {
    if constexpr (requires { ComputeAll(params, OperandsOf(operation)); }) {
      return ComputeAll(params, OperandsOf(operation));
    } else {
      return {Execute(operation, params)};
    }
  }

  template <typename Params>
  Elements Execute(const Operation& operation, const Params& params) const {
    return Compute(params, OperandsOf(operation));
  }

  Elements Execute(const Operation& operation, const network::InnerProduct& product) const {
    return FuseWeighted(operation, product, dims(operation.dst));
  }

  Elements Execute(const Operation& operation, const network::Convolution& convolution) const {
    if (!convolution.pooling) return FuseWeighted(operation, convolution, dims(operation.dst));
    const Elements src = FuseWeighted(operation, convolution, convolution.pooling->src);
    const network::Pooling maximum{
        network::Pooling::Algorithm::kMax, {2, 2}, {2, 2}, {0, 0}, {0, 0}};
    return Compute(maximum,
                   {{{src, convolution.pooling->src}}, dims(operation.dst), DataType::kF32});
  }

  Elements Execute(const Operation& operation, const network::Deconvolution& deconvolution) const {
    return FuseReal(operation, deconvolution);
  }

  Elements Execute(const Operation& operation, const network::DynamicConvolution& dynamic) const {
    return FuseReal(operation, dynamic);
  }

  Elements Execute(const Operation& operation, const network::DynamicInnerProduct& dynamic) const {
    return FuseReal(operation, dynamic);
  }

  Elements Execute(const Operation& operation, const network::IntegerMatmul& product) const {
    const ValueId src = operation.srcs[0], weights = operation.srcs[1];
    const Elements left = Real(elements_[src], product.src_quantization);
    const Elements right = Real(elements_[weights], product.weights_quantization);
    Elements dst =
        Compute(network::Matmul(),
                {{{left, dims(src)}, {right, dims(weights)}}, dims(operation.dst), DataType::kF32});
    if (product.dst_quantization) QuantizeAll(*product.dst_quantization, operation, &dst);
    return dst;
  }

  Elements Execute(const Operation& operation, const network::DynamicMatmul& product) const {
    const auto real = [&](ValueId integers, ValueId range) {
      Elements numbers = elements_[integers];
      for (double& number : numbers) number = (number - elements_[range][1]) * elements_[range][0];
      return numbers;
    };
    const std::vector<ValueId>& srcs = operation.srcs;
    Elements dst =
        Compute(network::Matmul(),
                {{{real(srcs[0], srcs[1]), dims(srcs[0])}, {real(srcs[2], srcs[3]), dims(srcs[2])}},
                 dims(operation.dst),
                 DataType::kF32});
    for (double& element : dst) element *= product.scale;
    return dst;
  }

  // The operation on the real numbers of all its sources, then its fused steps.
  template <typename Params>
  Elements FuseReal(const Operation& operation, const Params& params) const {
    Elements dst = Compute(params, OperandsOf(operation));
    ApplySteps(params.fused, dims(operation.dst), &dst);
    return dst;
  }

  // The operation on real numbers, with a result of dst_dims, then its fused steps.
  template <typename Params>
  Elements FuseWeighted(const Operation& operation, const Params& params,
                        const Dims& dst_dims) const {
    const ValueId src = operation.srcs[0];
    const Elements real = Real(elements_[src], params.src_quantization);
    Elements dst = Compute(params, {{{real, dims(src)}}, dst_dims, DataType::kF32});
    ApplySteps(params.fused, dst_dims, &dst);
    if (params.dst_quantization) QuantizeAll(*params.dst_quantization, operation, &dst);
    return dst;
  }

  // To integers of the type of the operation's result.
  void QuantizeAll(const network::QuantizationParams& params, const Operation& operation,
                   Elements* dst) const {
    const DataType type = network_.values[operation.dst].type;
    for (double& element : *dst)
      element = network::QuantizeElement(static_cast<float>(element), params, type);
  }

  void ApplySteps(const std::vector<FusedStep>& fused, const Dims& dst_dims, Elements* dst) const {
    Elements& elements = *dst;
    for (const FusedStep& step : fused) {
      if (step.kind == FusedStep::Kind::kSum) {
        const Elements addend = Real(elements_[step.addend], step.quantization);
        for (size_t i = 0; i < elements.size(); ++i) elements[i] += addend[i];
      } else if (step.kind == FusedStep::Kind::kPRelu) {
        const int64_t pixels = static_cast<int64_t>(elements.size()) / dst_dims[0] / dst_dims[1];
        for (size_t i = 0; i < elements.size(); ++i)
          if (elements[i] < 0)
            elements[i] *= step.slopes[static_cast<int64_t>(i) / pixels % dst_dims[1]];
      } else {
        for (double& element : elements)
          element = functions::EltwiseScalar(step.activation, static_cast<float>(element));
      }
    }
  }

  static Elements Real(Elements elements, const std::optional<QuantizationParams>& params) {
    if (!params) return elements;
    for (double& element : elements)
      element = network::DequantizeElement(static_cast<float>(element), *params);
    return elements;
  }

  const network::Network& network_;
  const AfterOperation& after_;
  const bool in_double_;
  std::vector<Elements> elements_;
};

}  // namespace

std::vector<Elements> Interpret(const network::Network& network,
                                const std::vector<Elements>& inputs, const AfterOperation& after) {
  return Interpreter(network, inputs, after, /*in_double=*/false).Run();
}

std::vector<Elements> InterpretInDouble(const network::Network& network,
                                        const std::vector<Elements>& inputs) {
  return Interpreter(network, inputs, nullptr, /*in_double=*/true).Run();
}

}  // namespace tilewire::testing
