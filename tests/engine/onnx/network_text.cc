// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/network_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewire::reader {

using network::Elementwise;
using network::FusedStep;
using network::Network;
using network::ValueId;
namespace {

// " u8"; nothing for f32.
std::string TypeText(DataType type) {
  return type == DataType::kF32 ? "" : absl::StrCat(" ", DataTypeName(type));
}

bool AllEqual(const Dims& dims, int64_t value) {
  return std::all_of(dims.begin(), dims.end(), [value](int64_t dim) { return dim == value; });
}

std::string SizesText(absl::string_view name, const Dims& dims, int64_t usual) {
  return AllEqual(dims, usual) ? "" : absl::StrCat(" ", name, "=", DimsToString(dims));
}

std::string PadsText(const Dims& left, const Dims& right) {
  if (AllEqual(left, 0) && AllEqual(right, 0)) return "";
  return absl::StrCat(" pads=", DimsToString(left), ",", DimsToString(right));
}

std::string WeightsText(const network::Weights& weights, const std::vector<float>& bias) {
  return absl::StrCat(" ", weights.key, DimsToString(weights.dims),
                      weights.transposed ? " transposed" : "",
                      weights.scale.empty() ? "" : " scaled", bias.empty() ? "" : " bias");
}

std::string QuantizationText(const network::QuantizationParams& params) {
  return absl::StrCat(params.scale, "@", params.zero_point);
}

std::string AxisQuantizationText(const std::vector<network::QuantizationParams>& quantization,
                                 int axis) {
  return absl::StrCat(" ", QuantizationText(quantization[0]),
                      quantization.size() == 1 ? "" : absl::StrCat(",... axis=", axis));
}

std::string ActivationText(const functions::EltwiseOp& op) {
  return absl::StrCat(AlgorithmName(op.function), "(", op.alpha, ",", op.beta, ")");
}

// One overload per operation: the name, then what follows the sources.
class ParamsText {
 public:
  explicit ParamsText(const Network& network) : network_(network) {}
  std::string name, rest;

  void operator()(const network::Convolution& c) {
    name = "convolution";
    rest = absl::StrCat(WeightsText(c.weights, c.bias),
                        c.groups == 1 ? "" : absl::StrCat(" groups=", c.groups),
                        SizesText("strides", c.strides, 1), SizesText("dilations", c.dilations, 0),
                        PadsText(c.padding_left, c.padding_right));
    AddFused(c);
    if (c.pooling) absl::StrAppend(&rest, " + max_pooling(2,2)");
  }
  void operator()(const network::ComputedConvolution& c) {
    name = "computed_convolution";
    rest = absl::StrCat(c.groups == 1 ? "" : absl::StrCat(" groups=", c.groups),
                        SizesText("strides", c.strides, 1), SizesText("dilations", c.dilations, 0),
                        PadsText(c.padding_left, c.padding_right));
  }
  void operator()(const network::ComputedDeconvolution& d) {
    (*this)(d.convolution);
    name = "computed_deconvolution";
  }
  void operator()(const network::Deconvolution& d) { SetWindowed("deconvolution", d); }
  void operator()(const network::DynamicConvolution& d) { SetWindowed("dynamic_convolution", d); }
  void operator()(const network::DynamicInnerProduct& product) {
    name = "dynamic_inner_product";
    rest = WeightsText(product.weights, product.bias);
    AddSteps(product.fused);
  }
  void operator()(const network::QuantizationRange&) { name = "quantization_range"; }
  void operator()(const network::DynamicQuantize&) { name = "dynamic_quantize"; }
  void operator()(const network::InnerProduct& product) {
    name = "inner_product";
    rest = WeightsText(product.weights, product.bias);
    AddFused(product);
  }
  void operator()(const network::Pooling& pooling) {
    constexpr absl::string_view kNames[] = {"max_pooling", "avg_include_padding",
                                            "avg_exclude_padding"};
    name = std::string(kNames[static_cast<int>(pooling.algorithm)]);
    rest = absl::StrCat(" kernel=", DimsToString(pooling.kernel),
                        SizesText("strides", pooling.strides, 1),
                        PadsText(pooling.padding_left, pooling.padding_right));
  }
  void operator()(const network::MaxWindow& window) {
    constexpr absl::string_view kResults[] = {"", " index", " column_major_index"};
    name = "max_window";
    rest = absl::StrCat(
        kResults[static_cast<int>(window.result)], " kernel=", DimsToString(window.kernel),
        SizesText("strides", window.strides, 1), SizesText("dilations", window.dilations, 0),
        SizesText("pads", window.padding_left, 0));
  }
  void operator()(const network::Activation& activation) {
    name = "activation";
    rest = absl::StrCat(" ", ActivationText(activation.op));
  }
  void operator()(const network::Softmax& softmax) { SetAxis("softmax", softmax.axis); }
  void operator()(const network::Sum&) { name = "sum"; }
  void operator()(const network::Concat& concat) { SetAxis("concat", concat.axis); }
  void operator()(const network::Shuffle& shuffle) {
    SetAxis("shuffle", shuffle.axis);
    absl::StrAppend(&rest, " group_size=", shuffle.group_size);
  }
  void operator()(const network::Reshape&) { name = "reshape"; }
  void operator()(const network::Convert& convert) {
    name = "convert";
    for (DataType type : convert.via)
      absl::StrAppend(&rest, rest.empty() ? " via " : ",", DataTypeName(type));
  }
  void operator()(const network::Transpose& transpose) {
    name = "transpose";
    rest = absl::StrCat(" order=[", absl::StrJoin(transpose.order, ","), "]");
  }
  void operator()(const network::Select& select) {
    name = "select";
    for (size_t d = 0; d < select.from.size(); ++d) {
      if (select.from[d].empty()) continue;
      absl::StrAppend(&rest, " ", d, ":");
      for (const IndexRun& run : select.from[d]) {
        absl::StrAppend(&rest, &run == &select.from[d].front() ? "" : "+",
                        run.start < 0 ? absl::StrCat("fill(", select.fill, ")")
                                      : absl::StrCat(run.start, run.step == 1 ? "" : " by "),
                        run.start < 0 || run.step == 1 ? "" : absl::StrCat(run.step), " x",
                        run.count);
      }
    }
  }
  void operator()(const Elementwise& elementwise) {
    name = std::string(AlgorithmName(elementwise.function));
    if (elementwise.alpha != 0 || elementwise.beta != 0)
      rest = absl::StrCat(" (", elementwise.alpha, ",", elementwise.beta, ")");
  }
  void operator()(const network::Reduce& reduce) {
    constexpr absl::string_view kNames[] = {
        "reduce_sum",     "reduce_mean",       "reduce_max",           "reduce_min",
        "reduce_product", "reduce_sum_of_abs", "reduce_sum_of_squares"};
    name = std::string(kNames[static_cast<int>(reduce.function)]);
  }
  void operator()(const network::Interpolate& interpolate) {
    SetAxis("interpolate", interpolate.axis);
    absl::StrAppend(&rest, " taps=", interpolate.taps);
  }
  void operator()(const network::GatherChannels& gather) {
    name = "gather_channels";
    constexpr size_t kShown = 8;
    for (size_t c = 0; c < std::min(kShown, gather.from.size()); ++c)
      absl::StrAppend(&rest, " ", gather.from[c].src, ":", gather.from[c].channel);
    if (gather.from.size() > kShown) absl::StrAppend(&rest, " ...");
  }
  void operator()(const network::Gather& gather) { SetAxis("gather", gather.axis); }
  void operator()(const network::Lrn& lrn) {
    name = "lrn";
    rest = absl::StrCat(" size=", lrn.size, " (", lrn.alpha, ",", lrn.beta, ",", lrn.k, ")");
  }
  void operator()(const network::LayerNormalization& norm) {
    name = "layer_normalization";
    rest = absl::StrCat(" epsilon=", norm.epsilon, norm.scale.empty() ? "" : " scaled");
  }
  void operator()(const network::BatchNormalization& norm) {
    name = "batch_normalization";
    rest = absl::StrCat(" epsilon=", norm.epsilon, norm.uses_given_statistics ? " given" : "",
                        norm.adds ? " adds" : "", norm.relu ? " relu" : "");
    if (std::isfinite(norm.relu_limit)) absl::StrAppend(&rest, "<=", norm.relu_limit);
  }
  void operator()(const network::Matmul&) { name = "matmul"; }
  void operator()(const network::IntegerMatmul& product) {
    name = "integer_matmul";
    rest = absl::StrCat(" from ", QuantizationText(product.src_quantization), ", ",
                        QuantizationText(product.weights_quantization));
    if (product.dst_quantization)
      absl::StrAppend(&rest, " to ", QuantizationText(*product.dst_quantization));
  }
  void operator()(const network::DynamicMatmul& product) {
    name = "dynamic_matmul";
    if (product.scale != 1) rest = absl::StrCat(" scale=", product.scale);
  }
  void operator()(const network::Loss& loss) {
    constexpr absl::string_view kNames[] = {"softmax_cross_entropy", "binary_cross_entropy",
                                            "mean_squared_error", "huber"};
    name = std::string(kNames[static_cast<size_t>(loss.function)]);
    rest = absl::StrCat(loss.mean ? "" : " sum", loss.gives_gradient ? "" : " alone");
    if (loss.factor != 1) absl::StrAppend(&rest, " factor=", loss.factor);
    if (loss.function == network::Loss::Function::kHuber)
      absl::StrAppend(&rest, " delta=", loss.delta);
    if (loss.label_smoothing != 0) absl::StrAppend(&rest, " smoothing=", loss.label_smoothing);
    if (loss.ignore_index) absl::StrAppend(&rest, " ignores=", *loss.ignore_index);
    if (!loss.class_weights.empty()) absl::StrAppend(&rest, " weights");
  }
  void operator()(const network::RoiAlign& pooling) {
    name = absl::StrCat("roi_align", pooling.takes_maximum ? " max" : "",
                        pooling.aligned ? "" : " unaligned");
    if (pooling.scale != 1) absl::StrAppend(&rest, " scale=", pooling.scale);
    if (pooling.samples_per_bin > 0) absl::StrAppend(&rest, " samples=", pooling.samples_per_bin);
  }
  void operator()(const network::Rnn& rnn) {
    name = std::string(AlgorithmName(rnn.cell));
    rest = absl::StrCat(" ", AlgorithmName(rnn.direction), rnn.clip > 0 ? " clip" : "",
                        rnn.couples_gates ? " coupled" : "", rnn.gives_iter ? " iter" : "",
                        rnn.gives_iter_c ? " iter_c" : "");
    constexpr absl::string_view kNames[] = {"layer",    "weights_layer", "weights_iter", "bias",
                                            "peephole", "iter",          "iter_c",       "lengths"};
    const char* separator = " of ";
    for (network::Rnn::Role role : rnn.roles) {
      absl::StrAppend(&rest, separator, kNames[static_cast<int>(role)]);
      separator = ",";
    }
    for (const auto& [role, weights] : rnn.known)
      absl::StrAppend(&rest, &weights == &rnn.known.front().second ? " with " : ",",
                      kNames[static_cast<int>(role)]);
  }
  void operator()(const network::Attention& attention) {
    name = "attention";
    rest = absl::StrCat(" scale=", attention.scale);
  }
  void operator()(const network::TopK& top) {
    SetAxis("top_k", top.axis);
    absl::StrAppend(&rest, top.largest ? "" : " smallest", top.indices ? " indices" : "",
                    top.last_of_equals ? " last" : "");
  }
  void operator()(const network::Quantize& quantize) {
    name = "quantize";
    rest = AxisQuantizationText(quantize.params, quantize.axis);
  }
  void operator()(const network::Dequantize& dequantize) {
    name = "dequantize";
    rest = AxisQuantizationText(dequantize.params, dequantize.axis);
  }
  void operator()(const network::ScaleBytes& bytes) {
    name = "scale_bytes";
    rest = absl::StrCat(" axis=", bytes.axis, " scale=", absl::StrJoin(bytes.scale, ","),
                        " shift=", absl::StrJoin(bytes.shift, ","));
  }
  void operator()(const network::IntegerSum& sum) {
    name = "integer_sum";
    for (size_t i = 0; i < sum.src_quantization.size(); ++i)
      absl::StrAppend(&rest, i == 0 ? " from " : ", ", QuantizationText(sum.src_quantization[i]));
    absl::StrAppend(&rest, sum.relu ? " + relu to " : " to ",
                    QuantizationText(sum.dst_quantization));
  }
  void operator()(const network::ConvolutionDataGradient& gradient) {
    operator()(gradient.forward);
    name = "convolution_data_gradient";
  }
  void operator()(const network::ConvolutionWeightsGradient& gradient) {
    operator()(gradient.forward);
    name = "convolution_weights_gradient";
  }
  void operator()(const network::MatmulGradient& gradient) {
    name = gradient.by_second ? "matmul_gradient_by_second" : "matmul_gradient_by_first";
  }
  void operator()(const network::ActivationGradient& gradient) {
    name = "activation_gradient";
    rest = absl::StrCat(" ", ActivationText(gradient.op), gradient.from_result ? " of result" : "");
  }
  void operator()(const network::PoolingGradient& gradient) {
    operator()(gradient.forward);
    absl::StrAppend(&name, "_gradient");
  }
  void operator()(const network::SoftmaxGradient& gradient) {
    SetAxis("softmax_gradient", gradient.axis);
  }
  void operator()(const network::BatchNormalizationGradient& gradient) {
    operator()(gradient.forward);
    name = "batch_normalization_gradient";
  }
  void operator()(const network::LayerNormalizationGradient& gradient) {
    name = "layer_normalization_gradient";
    rest = absl::StrCat(" epsilon=", gradient.epsilon);
  }
  void operator()(const network::LrnGradient& gradient) {
    operator()(gradient.forward);
    name = "lrn_gradient";
  }
  void operator()(const network::ReduceGradient& gradient) {
    operator()(network::Reduce{gradient.function});
    absl::StrAppend(&name, "_gradient");
  }
  void operator()(const network::GatherGradient& gradient) {
    SetAxis("gather_gradient", gradient.axis);
  }
  void operator()(const network::Literal& literal) {
    name = "literal";
    rest = absl::StrCat(" elements=", literal.constant->count());
  }

 private:
  template <typename Windowed>
  void SetWindowed(absl::string_view operation, const Windowed& windowed) {
    name = std::string(operation);
    rest = absl::StrCat(WeightsText(windowed.weights, windowed.bias),
                        windowed.groups == 1 ? "" : absl::StrCat(" groups=", windowed.groups),
                        SizesText("strides", windowed.strides, 1),
                        SizesText("dilations", windowed.dilations, 0),
                        PadsText(windowed.padding_left, windowed.padding_right));
    AddSteps(windowed.fused);
  }
  std::string StepText(const FusedStep& step) const {
    if (step.kind == FusedStep::Kind::kActivation) return ActivationText(step.activation);
    if (step.kind == FusedStep::Kind::kPRelu)
      return absl::StrCat("prelu[", step.slopes.size(), "]");
    return absl::StrCat("sum(", network_.values[step.addend].name, ")");
  }
  void SetAxis(absl::string_view operation, int axis) {
    name = std::string(operation);
    rest = absl::StrCat(" axis=", axis);
  }
  template <typename Weighted>
  void AddFused(const Weighted& weighted) {
    if (weighted.src_quantization)
      absl::StrAppend(&rest, " from ", QuantizationText(*weighted.src_quantization));
    AddSteps(weighted.fused);
    if (weighted.dst_quantization)
      absl::StrAppend(&rest, " to ", QuantizationText(*weighted.dst_quantization));
  }
  void AddSteps(const std::vector<FusedStep>& fused) {
    for (const FusedStep& step : fused) {
      absl::StrAppend(
          &rest, " + ", StepText(step),
          step.quantization ? absl::StrCat(" from ", QuantizationText(*step.quantization)) : "");
    }
  }
  const Network& network_;
};

}  // namespace

std::string NetworkToText(const Network& network) {
  const auto named = [&network](ValueId value) -> const network::Value& {
    return network.values[value];
  };
  std::string text;
  for (ValueId input : network.inputs) {
    absl::StrAppend(&text, "input ", named(input).name, TypeText(named(input).type), " ",
                    DimsToString(named(input).dims), "\n");
  }
  for (const network::Parameter& parameter : network.parameters) {
    absl::StrAppend(&text, parameter.learns ? "parameter " : "kept ", parameter.name, " ",
                    DimsToString(named(parameter.value).dims), "\n");
  }
  for (const network::Operation& operation : network.operations) {
    ParamsText params(network);
    std::visit([&params](const auto& operation_params) { params(operation_params); },
               operation.params);
    const std::string srcs = absl::StrJoin(
        operation.srcs, ", ",
        [&named](std::string* out, ValueId src) { absl::StrAppend(out, named(src).name); });
    std::vector<ValueId> results = {operation.dst};
    results.insert(results.end(), operation.more_dsts.begin(), operation.more_dsts.end());
    const std::string dsts =
        absl::StrJoin(results, ", ", [&named](std::string* out, ValueId result) {
          const network::Value& dst = named(result);
          absl::StrAppend(out, dst.name, TypeText(dst.type), " ", DimsToString(dst.dims));
        });
    absl::StrAppend(&text, dsts, " = ", params.name, "(", srcs, ")", params.rest, "\n");
  }
  for (const network::RunningStatistics& statistics : network.statistics) {
    absl::StrAppend(&text, "statistics ", statistics.mean->name, ", ", statistics.variance->name,
                    " by ", statistics.momentum, " of ", named(statistics.batch_mean).name, ", ",
                    named(statistics.batch_variance).name, "; elements=", statistics.elements,
                    "\n");
  }
  for (ValueId output : network.outputs)
    absl::StrAppend(&text, "output ", named(output).name, "\n");
  return text;
}

}  // namespace tilewire::reader
