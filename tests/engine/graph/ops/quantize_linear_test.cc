// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/graph/ops/quantize_linear.cc become, what these
// compute, and what they refuse.
#include "tests/engine/graph/quantized_model.h"

namespace tilewire::graph {
namespace {

TEST(QuantizeLinearTest, TypesFollowTheZeroPoint) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {2, 3}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("QuantizeLinear", {"x", "s3", "z3"}, {"p"}).Node("QuantizeLinear", {"x", "s"}, {"r"});
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"}).Node("Cast", {"p"}, {"c"}, {Int("to", 1)});
  model.Node("Cast", {"r"}, {"d"}, {Int("to", 1)}).Output("y").Output("c").Output("d");
  EXPECT_EQ(BuiltText(model, {{2, 3}}),
            "input x [2,3]\nq u8 [2,3] = quantize(x) 0.5@128\n"
            "p s8 [2,3] = quantize(x) 0.5@0,... axis=1\nr u8 [2,3] = quantize(x) 0.5@0\n"
            "y [2,3] = dequantize(q) 0.5@128\nc [2,3] = dequantize(p) 1@0\n"
            "d [2,3] = dequantize(r) 1@0\noutput y\noutput c\noutput d\n");
}

TEST(QuantizeLinearTest, WhatMovesIntegersKeepsThemAndWhatComputesRefusesThem) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 4, 4}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("MaxPool", {"q"}, {"m"}, {Ints("kernel_shape", {2, 2})});
  model.Node("Flatten", {"m"}, {"f"}).Output("f");
  EXPECT_EQ(BuiltText(model, {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\nq u8 [1,2,4,4] = quantize(x) 0.5@128\n"
            "m u8 [1,2,3,3] = max_pooling(q) kernel=[2,2]\nf u8 [1,18] = reshape(m)\n"
            "f [1,18] = dequantize(f) 1@0\noutput f\n");
  model.Node("Sigmoid", {"q"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{1, 2, 4, 4}}), HasSubstr("UNIMPLEMENTED: node 'node_y'"));
}

TEST(QuantizeLinearTest, ComputedGridsAreArithmetic) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Bytes("w", {3, 4}, true).Node("MatMulInteger", {"q", "w", "z"}, {"y"}).Output("y");
  const absl::StatusOr<Network> network = Built(model, {{2, 3}});
  ASSERT_TRUE(network.ok()) << network.status();
  // The range is -1 to 4: steps of 1/51, 51 of which are below 0.
  const std::vector<Elements> y = Interpret(*network, {{-1, 0, 4, 1, 2, 3}});
  const int q[] = {-51, 0, 204, 51, 102, 153};
  for (int i = 0; i < 8; ++i) {
    int want = 0;
    for (int k = 0; k < 3; ++k) {
      const int weight = ((k * 4 + i % 4) * 37 + 1) % 255 - 127;  // OnnxBuilder::Bytes()
      want += q[i / 4 * 3 + k] * weight;
    }
    EXPECT_EQ(y[0][i], want);
  }
}

TEST(QuantizeLinearTest, RefusesWhatItCannotHold) {
  const auto message = [](const OnnxBuilder& model) { return BuiltText(model, {{1, 2, 5, 5}}); };
  OnnxBuilder zero_scale = QuantizedModel();
  zero_scale.Input("x", {1, 2, 5, 5}).Floats("o", {}, {0.0f});
  zero_scale.Node("QuantizeLinear", {"x", "o", "z"}, {"y"}).Output("y");
  EXPECT_THAT(message(zero_scale), HasSubstr("INVALID_ARGUMENT: node 'node_y'"));
  OnnxBuilder wrong_count = QuantizedModel();
  wrong_count.Input("x", {1, 2, 5, 5}).Node("QuantizeLinear", {"x", "s3", "z3"}, {"y"});
  EXPECT_THAT(message(wrong_count.Output("y")), HasSubstr("3 scales along axis 1 of [1,2,5,5]"));
  OnnxBuilder wide = QuantizedModel();
  wide.Input("x", {1, 2, 5, 5}).Tensor("wz", {}, onnx::TensorProto::INT32)->add_int32_data(0);
  wide.Node("QuantizeLinear", {"x", "s", "wz"}, {"y"}).Output("y");
  EXPECT_THAT(message(wide), HasSubstr("UNIMPLEMENTED"));
}

}  // namespace
}  // namespace tilewire::graph
