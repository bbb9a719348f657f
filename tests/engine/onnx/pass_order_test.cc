// SPDX-License-Identifier: Apache-2.0
//
// The order of the passes: for each pair that the table orders, a model on which the other order
// gives another network.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_split.h"
#include "engine/network/passes/passes.h"
#include "tests/engine/onnx/fixture.h"

namespace tilewire::reader {

using network::Pass;
using network::PassTable;
namespace {

using OrderedPair = std::pair<std::string, std::string>;

std::set<OrderedPair> OrderedPairs() {
  std::set<OrderedPair> pairs;
  for (const Pass& pass : PassTable()) {
    for (absl::string_view later : absl::StrSplit(pass.before, ' ', absl::SkipEmpty()))
      pairs.emplace(pass.name, later);
  }
  return pairs;
}

size_t PlaceOf(absl::string_view name) {
  const absl::Span<const Pass> table = PassTable();
  return std::find_if(table.begin(), table.end(),
                      [&](const Pass& pass) { return pass.name == name; }) -
         table.begin();
}

// The network's text with `pass` run right after `other` instead of at its place.
std::string TextWithPassAfter(const OnnxBuilder& model, const Dims& dims, absl::string_view pass,
                              absl::string_view other) {
  absl::StatusOr<network::Network> network = Built(model, {dims});
  if (!network.ok()) return network.status().ToString();
  for (const Pass& row : PassTable()) {
    if (row.name != pass) row.run(&*network);
    if (row.name == other) PassTable()[PlaceOf(pass)].run(&*network);
  }
  return NetworkToText(*network);
}

OnnxBuilder LinearLayer() {
  OnnxBuilder model;
  model.Input("x", {2, 3, 4, 6}).Floats("w", {6, 6}).Node("MatMul", {"x", "w"}, {"p"});
  return model;
}

void AddScaleShift(OnnxBuilder* model, const std::string& src, const std::string& dst) {
  model->Floats(dst + ".f", {1, 6, 1, 1}).Node("Mul", {src, dst + ".f"}, {dst});
}

OnnxBuilder SpelledGelu() {
  OnnxBuilder model = LinearLayer();
  model.Floats("r", {}, {1.41421356f}).Floats("one", {}, {1}).Floats("half", {}, {0.5f});
  model.Node("Div", {"p", "r"}, {"d"}).Node("Erf", {"d"}, {"e"}).Node("Add", {"e", "one"}, {"g"});
  model.Node("Mul", {"p", "g"}, {"m"}).Node("Mul", {"m", "half"}, {"a"});
  model.Node("Transpose", {"a"}, {"y"}, {Ints("perm", {0, 3, 1, 2})});
  return model.Output("y");
}

OnnxBuilder BiasedLayer() {
  OnnxBuilder model = LinearLayer();
  model.Floats("b", {6}).Node("Add", {"p", "b"}, {"s"});
  model.Node("Transpose", {"s"}, {"y"}, {Ints("perm", {0, 3, 1, 2})});
  return model.Output("y");
}

OnnxBuilder ScaledLayer() {
  OnnxBuilder model = LinearLayer();
  model.Node("Transpose", {"p"}, {"t"}, {Ints("perm", {0, 3, 1, 2})});
  AddScaleShift(&model, "t", "y");
  return model.Output("y");
}

OnnxBuilder ConvolvedImage() {
  OnnxBuilder model(14);
  model.Input("x", {1, 6, 4, 4}).Floats("w", {6, 6, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  return model;
}

OnnxBuilder ScaledConvolution() {
  OnnxBuilder model = ConvolvedImage();
  AddScaleShift(&model, "c", "f");
  return model.Node("Relu", {"f"}, {"y"}).Output("y");
}

OnnxBuilder SpelledHardSigmoid() {
  OnnxBuilder model = ConvolvedImage();
  model.Floats("0", {}, {0}).Floats("3", {}, {3}).Floats("6", {}, {6});
  model.Node("Add", {"c", "3"}, {"s"}).Node("Clip", {"s", "0", "6"}, {"b"});
  return model.Node("Div", {"b", "6"}, {"y"}).Output("y");
}

OnnxBuilder Swish() {
  OnnxBuilder model = ConvolvedImage();
  model.Node("Sigmoid", {"c"}, {"g"}).Node("Mul", {"c", "g"}, {"y"});
  return model.Output("y");
}

OnnxBuilder PooledConvolution() {
  OnnxBuilder model = ConvolvedImage();
  model.Node("Relu", {"c"}, {"r"});
  model.Node("MaxPool", {"r"}, {"y"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  return model.Output("y");
}

OnnxBuilder SqueezeGate() {
  OnnxBuilder model(13);
  model.Input("x", {1, 6, 4, 4}).Node("GlobalAveragePool", {"x"}, {"a"});
  model.Node("Flatten", {"a"}, {"f"}).Floats("v", {2, 6}).Floats("w", {6, 2});
  model.Node("Gemm", {"f", "v"}, {"c"}, {Int("transB", 1)}).Node("Relu", {"c"}, {"r"});
  model.Node("Gemm", {"r", "w"}, {"d"}, {Int("transB", 1)}).Node("Sigmoid", {"d"}, {"s"});
  model.Integers("shape", {1, 6, 1, 1}).Node("Reshape", {"s", "shape"}, {"g"});
  return model.Node("Mul", {"x", "g"}, {"y"}).Output("y");
}

OnnxBuilder ReshapedTwice() {
  OnnxBuilder model(13);
  model.Input("x", {2, 3, 2, 2}).Integers("a", {2, 12}).Integers("b", {4, 6});
  model.Node("Reshape", {"x", "b"}, {"r"}).Node("Reshape", {"r", "a"}, {"f"});
  return model.Floats("w", {12, 5}).Node("MatMul", {"f", "w"}, {"y"}).Output("y");
}

OnnxBuilder ShuffledConcatenation() {
  OnnxBuilder model(13);
  model.Input("x", {1, 4, 3, 3}).Node("Relu", {"x"}, {"u"}).Node("Tanh", {"x"}, {"v"});
  model.Node("Concat", {"u", "v"}, {"c"}, {Int("axis", 1)});
  model.Integers("a", {1, 2, 4, 3, 3}).Integers("b", {1, 8, 3, 3});
  model.Node("Reshape", {"c", "a"}, {"r"});
  model.Node("Transpose", {"r"}, {"t"}, {Ints("perm", {0, 2, 1, 3, 4})});
  return model.Node("Reshape", {"t", "b"}, {"y"}).Output("y");
}

// `src` as 8-bit integers `dst`.q and as the real numbers `dst` that they stand for.
OnnxBuilder& AddQuantizedPair(OnnxBuilder* model, const std::string& src, const std::string& dst) {
  return model->Node("QuantizeLinear", {src, "s", "z"}, {dst + ".q"})
      .Node("DequantizeLinear", {dst + ".q", "s", "z"}, {dst});
}

// Quantized x as "a", and s8 weights "wr".
OnnxBuilder QuantizedSource() {
  OnnxBuilder model(13);
  model.Input("x", {1, 6, 4, 4}).Floats("s", {}, {0.5f}).Bytes("z", {}, false, {0});
  model.Bytes("w", {6, 6, 1, 1}, true).Floats("ws", {}, {0.25f});
  model.Node("DequantizeLinear", {"w", "ws"}, {"wr"});
  AddQuantizedPair(&model, "x", "a");
  return model;
}

OnnxBuilder PaddedIntegers() {
  OnnxBuilder model = QuantizedSource();
  model.Integers("pads", {0, 0, 1, 1, 0, 0, 1, 1}).Node("Pad", {"a", "pads"}, {"p"});
  return model.Node("Conv", {"p", "wr"}, {"y"}).Output("y");
}

OnnxBuilder QuantizedConcatenation() {
  OnnxBuilder model = QuantizedSource();
  AddQuantizedPair(&model, "x", "b");
  model.Node("Concat", {"a", "b"}, {"c"}, {Int("axis", 1)});
  return AddQuantizedPair(&model, "c", "y").Output("y");
}

OnnxBuilder PooledIntegers() {
  OnnxBuilder model = QuantizedSource();
  model.Node("MaxPool", {"a"}, {"m"}, {Ints("kernel_shape", {2, 2})});
  return model.Node("Conv", {"m", "wr"}, {"y"}).Output("y");
}

OnnxBuilder PooledConvolutionOfIntegers() {
  OnnxBuilder model = QuantizedSource();
  model.Node("Conv", {"a", "wr"}, {"c"});
  model.Node("MaxPool", {"c"}, {"y"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  return model.Output("y");
}

OnnxBuilder ConvolutionBetweenPairs() {
  OnnxBuilder model = QuantizedSource();
  model.Node("Conv", {"a", "wr"}, {"c"}).Node("Relu", {"c"}, {"r"});
  return AddQuantizedPair(&model, "r", "y").Output("y");
}

OnnxBuilder DynamicallyQuantized() {
  OnnxBuilder model(13);
  model.Input("x", {1, 6, 4, 4}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Bytes("w", {6, 6, 1, 1}, true).Node("ConvInteger", {"q", "w", "z"}, {"i"});
  model.Node("Cast", {"i"}, {"r"}, {Int("to", onnx::TensorProto::FLOAT)});
  model.Floats("ws", {}, {0.25f}).Node("Mul", {"s", "ws"}, {"step"});
  model.Node("Mul", {"r", "step"}, {"p"}).Floats("b", {1, 6, 1, 1});
  return model.Node("Add", {"p", "b"}, {"y"}).Output("y");
}

OnnxBuilder DynamicallyQuantizedRows() {
  OnnxBuilder model(13);
  model.Input("x", {2, 3, 6}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Bytes("w", {6, 5}, true).Node("MatMulInteger", {"q", "w", "z"}, {"i"});
  model.Node("Cast", {"i"}, {"r"}, {Int("to", onnx::TensorProto::FLOAT)});
  model.Floats("ws", {}, {0.25f}).Node("Mul", {"s", "ws"}, {"step"});
  model.Node("Mul", {"r", "step"}, {"p"}).Floats("b", {5}).Node("Add", {"b", "p"}, {"a"});
  return model.Node("Relu", {"a"}, {"y"}).Output("y");
}

OnnxBuilder TransposedBytes() {
  OnnxBuilder model;
  model.Input("x", {1, 4, 4, 6}, onnx::TensorProto::UINT8);
  model.Node("Cast", {"x"}, {"real"}, {Int("to", onnx::TensorProto::FLOAT)});
  model.Node("Transpose", {"real"}, {"t"}, {Ints("perm", {0, 3, 1, 2})});
  model.Floats("f", {1, 6, 1, 1}, {1, 2, 3, 4, 5, 6}).Node("Mul", {"t", "f"}, {"y"});
  return model.Output("y");
}

OnnxBuilder ChosenByConverted() {
  OnnxBuilder model;
  model.Input("x", {2}, onnx::TensorProto::UINT8).Floats("a", {2}).Floats("b", {2});
  model.Node("Cast", {"x"}, {"s"}, {Int("to", onnx::TensorProto::INT8)});
  model.Node("Cast", {"s"}, {"t"}, {Int("to", onnx::TensorProto::BOOL)});
  model.Node("Where", {"t", "a", "b"}, {"y"}).Output("y");
  return model;
}

struct OrderCase {
  OrderedPair pair;
  OnnxBuilder model;
  Dims dims;
};

std::vector<OrderCase> OrderCases() {
  const Dims rows = {2, 3, 4, 6}, image = {1, 6, 4, 4};
  return {
      {{"fold_pad", "sink_dequantize"}, PaddedIntegers(), image},
      {{"fuse_gelu", "convolve_rows"}, SpelledGelu(), rows},
      {{"fuse_image_scaling", "sink_dequantize"}, TransposedBytes(), {1, 4, 4, 6}},
      {{"fuse_bias", "convolve_rows"}, BiasedLayer(), rows},
      {{"fuse_dynamic_quantization", "fuse_bias"}, DynamicallyQuantizedRows(), {2, 3, 6}},
      {{"fuse_dynamic_quantization", "fold_scale_shift"}, DynamicallyQuantized(), image},
      {{"convolve_rows", "fold_scale_shift"}, ScaledLayer(), rows},
      {{"fold_scale_shift", "fuse_post_ops"}, ScaledConvolution(), image},
      {{"lift_quantize", "sink_dequantize"}, QuantizedConcatenation(), image},
      {{"sink_dequantize", "fold_dequantize"}, PooledIntegers(), image},
      {{"fold_dequantize", "fuse_pooling"}, PooledConvolutionOfIntegers(), image},
      {{"fold_dequantize", "fold_quantize"}, ConvolutionBetweenPairs(), image},
      {{"collapse_reshapes", "fold_flatten"}, ReshapedTwice(), {2, 3, 2, 2}},
      {{"narrow_truths", "collapse_converts"}, ChosenByConverted(), {2}},
      {{"fuse_shuffle", "fuse_gather_channels"}, ShuffledConcatenation(), {1, 4, 3, 3}},
      {{"fuse_hard_sigmoid", "fuse_post_ops"}, SpelledHardSigmoid(), image},
      {{"fuse_swish", "fuse_post_ops"}, Swish(), image},
      {{"fuse_post_ops", "convolve_gates"}, SqueezeGate(), image},
      {{"fuse_post_ops", "fuse_pooling"}, PooledConvolution(), image},
      {{"fuse_post_ops", "fold_quantize"}, ConvolutionBetweenPairs(), image},
  };
}

TEST(PassOrderTest, EveryPassRunsBeforeThoseThatItsRowNames) {
  for (const auto& [pass, later] : OrderedPairs()) {
    ASSERT_LT(PlaceOf(later), PassTable().size()) << later;
    EXPECT_LT(PlaceOf(pass), PlaceOf(later)) << pass << " before " << later;
  }
}

TEST(PassOrderTest, TheOtherOrderGivesAnotherNetwork) {
  std::set<OrderedPair> unproven = OrderedPairs();
  for (const OrderCase& c : OrderCases()) {
    const auto& [pass, later] = c.pair;
    EXPECT_EQ(unproven.erase(c.pair), 1) << pass << " before " << later << " is not in the table";
    EXPECT_NE(TextWithPassAfter(c.model, c.dims, pass, later), AfterPasses(c.model, {c.dims}))
        << pass << " after " << later;
  }
  for (const auto& [pass, later] : unproven) ADD_FAILURE() << pass << " before " << later;
}

}  // namespace
}  // namespace tilewire::reader
