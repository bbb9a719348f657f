// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/graph/interpreter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/jit/eltwise.h"
#include "tests/support/loop_operations.h"
#include "tests/support/window_operations.h"

namespace tilewire::graph {
namespace {

// Row-major counting over `dims`; false after the last index.
bool Advance(const Dims& dims, Dims* index) {
  for (size_t i = dims.size(); i-- > 0;) {
    if (++(*index)[i] < dims[i]) return true;
    (*index)[i] = 0;
  }
  return false;
}

int64_t OffsetOf(const Dims& dims, const Dims& index) {
  int64_t offset = 0;
  for (size_t i = 0; i < dims.size(); ++i) offset = offset * dims[i] + index[i];
  return offset;
}

Dims Spatial(const Dims& dims) { return Dims(dims.begin() + 2, dims.end()); }

double WeightAt(const Weights& weights, absl::Span<const float> elements, int64_t row,
                int64_t column, int64_t columns) {
  const int64_t rows = weights.dims[0];
  const double raw = elements[weights.transposed ? column * rows + row : row * columns + column];
  return weights.scale.empty() ? raw : raw * weights.scale[row];
}

class Interpreter {
 public:
  Interpreter(const Network& network, const std::vector<Elements>& inputs)
      : network_(network), elements_(network.values.size()) {
    for (size_t i = 0; i < inputs.size(); ++i) elements_[network.inputs[i]] = inputs[i];
  }

  std::vector<Elements> Run() {
    for (const Operation& operation : network_.operations) {
      operation_ = &operation;
      elements_[operation.dst].assign(*ElementCount(Dst()), 0);
      std::visit([this](const auto& params) { Execute(params); }, operation.params);
    }
    std::vector<Elements> outputs;
    for (ValueId output : network_.outputs) outputs.push_back(elements_[output]);
    return outputs;
  }

 private:
  const Dims& Src(int i = 0) const { return network_.values[operation_->srcs[i]].dims; }
  const Dims& Dst() const { return network_.values[operation_->dst].dims; }
  const Elements& In(int i = 0) const { return elements_[operation_->srcs[i]]; }
  DataType DstType() const { return network_.values[operation_->dst].type; }
  double Real(double element, const std::optional<QuantizationParams>& params) const {
    return params ? DequantizeElement(static_cast<float>(element), *params) : element;
  }
  Elements& Out() { return elements_[operation_->dst]; }

  void Fuse(const std::vector<FusedStep>& steps,
            const std::optional<QuantizationParams>& dst_quantization) {
    for (const FusedStep& step : steps) {
      for (size_t i = 0; i < Out().size(); ++i) {
        Out()[i] = step.kind == FusedStep::Kind::kSum
                       ? Out()[i] + Real(elements_[step.addend][i], step.quantization)
                       : jit::EltwiseScalar(step.activation, static_cast<float>(Out()[i]));
      }
    }
    for (double& element : Out()) {
      if (dst_quantization)
        element = QuantizeElement(static_cast<float>(element), *dst_quantization, DstType());
    }
  }

  // The grid of element i of a tensor of these dims.
  static const QuantizationParams& ParamsAt(const std::vector<QuantizationParams>& quantization,
                                            int axis, const Dims& dims, size_t i) {
    if (quantization.size() == 1) return quantization[0];
    for (size_t d = dims.size() - 1; d > static_cast<size_t>(axis); --d) i /= dims[d];
    return quantization[i % dims[axis]];
  }
  void Execute(const Quantize& quantize) {
    for (size_t i = 0; i < Out().size(); ++i)
      Out()[i] = QuantizeElement(static_cast<float>(In()[i]),
                                 ParamsAt(quantize.params, quantize.axis, Dst(), i), DstType());
  }
  void Execute(const Dequantize& dequantize) {
    for (size_t i = 0; i < Out().size(); ++i)
      Out()[i] = DequantizeElement(static_cast<float>(In()[i]),
                                   ParamsAt(dequantize.params, dequantize.axis, Dst(), i));
  }

  void Execute(const IntegerSum& sum) {
    for (size_t i = 0; i < Out().size(); ++i) {
      float real = 0;
      for (size_t s = 0; s < sum.src_quantization.size(); ++s)
        real += DequantizeElement(static_cast<float>(In(s)[i]), sum.src_quantization[s]);
      if (sum.relu && real < 0) real = 0;
      Out()[i] = QuantizeElement(real, sum.dst_quantization, DstType());
    }
  }

  // Calls visit(source offset within a channel, window offset) for each element of the window that
  // is inside src.
  template <typename Visit>
  void OverWindow(const Dims& kernel, const Dims& strides, const Dims& dilations, const Dims& left,
                  const Dims& position, Visit visit) {
    const Dims spatial = Spatial(Src());
    Dims k(kernel.size(), 0), at(kernel.size(), 0);
    do {
      bool inside = true;
      for (size_t i = 0; i < kernel.size(); ++i) {
        at[i] = position[i + 2] * strides[i] + k[i] * (dilations[i] + 1) - left[i];
        inside = inside && at[i] >= 0 && at[i] < spatial[i];
      }
      if (inside) visit(OffsetOf(spatial, at), OffsetOf(kernel, k));
    } while (Advance(kernel, &k));
  }

  // The maximum of each 2x2 of `elements`, which have `dims`.
  void Pool(const Elements& elements, const Dims& dims) {
    Dims index(Dst().size(), 0);
    int64_t n = 0;
    do {
      const int64_t row = (index[0] * dims[1] + index[1]) * dims[2] + 2 * index[2];
      const double* first = &elements[row * dims[3] + 2 * index[3]];
      const double* second = first + dims[3];
      Out()[n++] = std::max(std::max(first[0], first[1]), std::max(second[0], second[1]));
    } while (Advance(Dst(), &index));
  }

  void Execute(const Convolution& c) {
    const Dims dims = c.pooling ? c.pooling->src : Dst();
    Out().assign(*ElementCount(dims), 0);
    const HeldFloats held = LoadElements(c.weights).value();
    const Dims &weights = c.weights.dims, kernel = Spatial(weights);
    const int64_t src_plane = *ElementCount(Spatial(Src())), window = *ElementCount(kernel);
    Dims index(dims.size(), 0);
    int64_t n = 0;
    do {
      const int64_t o = index[1], first = o / (weights[0] / c.groups) * weights[1];
      double sum = c.bias.empty() ? 0 : c.bias[o];
      for (int64_t i = 0; i < weights[1]; ++i) {
        const int64_t base = (index[0] * Src()[1] + first + i) * src_plane;
        OverWindow(
            kernel, c.strides, c.dilations, c.padding_left, index, [&](int64_t at, int64_t k) {
              sum += Real(In()[base + at], c.src_quantization) *
                     WeightAt(c.weights, held.values, o, i * window + k, weights[1] * window);
            });
      }
      Out()[n++] = sum;
    } while (Advance(dims, &index));
    Fuse(c.fused, c.dst_quantization);
    if (!c.pooling) return;
    const Elements unpooled = std::exchange(Out(), Elements(*ElementCount(Dst())));
    Pool(unpooled, dims);
  }

  void Execute(const InnerProduct& product) {
    const HeldFloats held = LoadElements(product.weights).value();
    const int64_t rows = Dst()[0], outputs = Dst()[1], inputs = product.weights.dims[1];
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t o = 0; o < outputs; ++o) {
        double sum = product.bias.empty() ? 0 : product.bias[o];
        for (int64_t i = 0; i < inputs; ++i)
          sum += Real(In()[r * inputs + i], product.src_quantization) *
                 WeightAt(product.weights, held.values, o, i, inputs);
        Out()[r * outputs + o] = sum;
      }
    }
    Fuse(product.fused, product.dst_quantization);
  }

  void Execute(const Pooling& pooling) {
    const int64_t src_plane = *ElementCount(Spatial(Src()));
    const bool max = pooling.algorithm == Pooling::Algorithm::kMax;
    Dims index(Dst().size(), 0);
    int64_t n = 0;
    do {
      const int64_t base = (index[0] * Src()[1] + index[1]) * src_plane;
      double best = -std::numeric_limits<double>::infinity(), sum = 0, count = 0;
      OverWindow(pooling.kernel, pooling.strides, Dims(pooling.kernel.size(), 0),
                 pooling.padding_left, index, [&](int64_t at, int64_t) {
                   best = std::max(best, In()[base + at]);
                   sum += In()[base + at];
                   ++count;
                 });
      if (pooling.algorithm == Pooling::Algorithm::kAvgIncludePadding)
        count = *ElementCount(pooling.kernel);
      Out()[n++] = max ? best : sum / count;
    } while (Advance(Dst(), &index));
  }

  void Execute(const Activation& activation) {
    for (size_t i = 0; i < Out().size(); ++i) {
      Out()[i] = jit::EltwiseScalar(activation.op, static_cast<float>(In()[i]));
    }
  }

  void Execute(const Softmax& softmax) {
    int64_t inner = 1;
    for (size_t i = softmax.axis + 1; i < Dst().size(); ++i) inner *= Dst()[i];
    const int64_t size = Dst()[softmax.axis],
                  outer = static_cast<int64_t>(Out().size()) / (inner * size);
    for (int64_t row = 0; row < outer * inner; ++row) {
      const int64_t base = row / inner * size * inner + row % inner;
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) sum += std::exp(In()[base + i * inner]);
      for (int64_t i = 0; i < size; ++i)
        Out()[base + i * inner] = std::exp(In()[base + i * inner]) / sum;
    }
  }

  void Execute(const Sum&) {
    for (size_t s = 0; s < operation_->srcs.size(); ++s) {
      for (size_t i = 0; i < Out().size(); ++i) Out()[i] += In(static_cast<int>(s))[i];
    }
  }

  void Execute(const Concat& concat) {
    Dims index(Dst().size(), 0);
    int64_t n = 0;
    do {
      Dims at = index;
      int s = 0;
      while (at[concat.axis] >= Src(s)[concat.axis]) at[concat.axis] -= Src(s++)[concat.axis];
      Out()[n++] = In(s)[OffsetOf(Src(s), at)];
    } while (Advance(Dst(), &index));
  }

  // The formula of engine/primitives/shuffle/shuffle.h.
  void Execute(const Shuffle& shuffle) {
    const int64_t size = Dst()[shuffle.axis], group = shuffle.group_size;
    Dims index(Dst().size(), 0);
    int64_t n = 0;
    do {
      Dims at = index;
      const int64_t v = index[shuffle.axis] / (size / group),
                    u = index[shuffle.axis] % (size / group);
      at[shuffle.axis] = u * group + v;
      Out()[n++] = In()[OffsetOf(Src(), at)];
    } while (Advance(Dst(), &index));
  }

  void Execute(const Reshape&) { Out() = In(); }

  void Execute(const Transpose& transpose) {
    Dims index(Dst().size(), 0);
    int64_t n = 0;
    do {
      Dims at(index.size(), 0);
      for (size_t i = 0; i < index.size(); ++i) at[transpose.order[i]] = index[i];
      Out()[n++] = In()[OffsetOf(Src(), at)];
    } while (Advance(Dst(), &index));
  }

  testing::Shaped<Elements> Shaped(int i = 0) const { return {In(i), Src(i)}; }
  void Execute(const Select& select) { testing::DoSelect(select, Shaped(), Dst(), &Out()); }
  void Execute(const Literal& literal) {
    Out().assign(literal.constant->floats.begin(), literal.constant->floats.end());
  }
  void Execute(const graph::Elementwise& elementwise) {
    std::vector<testing::Shaped<Elements>> srcs;
    for (size_t i = 0; i < operation_->srcs.size(); ++i)
      srcs.push_back(Shaped(static_cast<int>(i)));
    testing::DoElementwise(elementwise, srcs, Dst(), &Out());
  }
  void Execute(const GatherChannels& gather) {
    std::vector<testing::Shaped<Elements>> srcs;
    for (size_t i = 0; i < operation_->srcs.size(); ++i)
      srcs.push_back(Shaped(static_cast<int>(i)));
    testing::DoGatherChannels(gather, srcs, Dst(), &Out());
  }
  void Execute(const Gather& gather) { testing::DoGather(gather, Shaped(0), Shaped(1), &Out()); }
  void Execute(const ComputedConvolution& convolution) {
    std::vector<testing::Shaped<Elements>> srcs;
    for (size_t i = 0; i < operation_->srcs.size(); ++i)
      srcs.push_back(Shaped(static_cast<int>(i)));
    testing::DoComputedConvolution(convolution, srcs, Dst(), &Out());
  }
  void Execute(const MaxWindow& window) { testing::DoMaxWindow(window, Shaped(), Dst(), &Out()); }
  void Execute(const Lrn& lrn) { testing::DoLrn(lrn, Shaped(), &Out()); }
  void Execute(const LayerNormalization& norm) {
    testing::DoLayerNormalization(norm, Shaped(), &Out());
  }
  void Execute(const Matmul&) { testing::DoMatmul(Shaped(0), Shaped(1), Dst(), &Out()); }
  void Execute(const TopK& top) { testing::DoTopK(top, Shaped(), Dst(), &Out()); }
  void Execute(const Reduce& reduce) { testing::DoReduce(reduce, Shaped(), Dst(), &Out()); }
  void Execute(const Interpolate& interpolate) {
    testing::DoInterpolate(interpolate, Shaped(), Dst(), &Out());
  }

  const Network& network_;
  std::vector<Elements> elements_;
  const Operation* operation_ = nullptr;
};

}  // namespace

std::vector<Elements> Interpret(const Network& network, const std::vector<Elements>& inputs) {
  return Interpreter(network, inputs).Run();
}

}  // namespace tilewire::graph
