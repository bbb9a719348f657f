// SPDX-License-Identifier: Apache-2.0
//
// Operators that ONNX Runtime's optimiser writes (engine/onnx/ops/microsoft.cc): the networks are
// those of the operators that it put together.
#include <cmath>

#include "tests/engine/onnx/fixture.h"

namespace tilewire::reader {
namespace {

// `op` on inputs x [1,2,3,3], r [2,4], t [2,4] and constants, its outputs y0, y1, ...
std::string TextOf(const std::string& domain, const std::string& op,
                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const std::vector<onnx::AttributeProto>& attributes) {
  OnnxBuilder model(20);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("x", {1, 2, 3, 3}).Input("z", {1, 2, 3, 3}).Input("r", {2, 4}).Input("t", {2, 4});
  model.Floats("w", {2, 2, 1, 1}).Floats("b", {2}).Floats("m", {4, 4}).Floats("four", {4});
  model.Floats("shift", {4}).Floats("low", {}, {0}).Floats("high", {}, {6});
  model.Node(op, inputs, outputs, attributes);
  model.graph().mutable_node()->rbegin()->set_domain(domain);
  for (const std::string& output : outputs) {
    if (!output.empty()) model.Output(output);
  }
  return AfterPasses(model, {{1, 2, 3, 3}, {1, 2, 3, 3}, {2, 4}, {2, 4}});
}

// The lines after the inputs.
std::string Microsoft(const std::string& op, const std::vector<std::string>& inputs,
                      const std::vector<onnx::AttributeProto>& attributes = {},
                      const std::vector<std::string>& outputs = {"y"}) {
  const std::string text = TextOf("com.microsoft", op, inputs, outputs, attributes);
  const size_t last_input = text.find("input t [2,4]\n");
  return last_input == text.npos ? text : text.substr(last_input + 14);
}

onnx::AttributeProto Numbers(const std::vector<float>& numbers) {
  onnx::AttributeProto attribute =
      testing::Attribute("activation_params", onnx::AttributeProto::FLOATS);
  for (float number : numbers) attribute.add_floats(number);
  return attribute;
}

TEST(MicrosoftTest, FusedConvolutionsAreFusedAgain) {
  EXPECT_EQ(Microsoft("FusedConv", {"x", "w", "b"},
                      {String("activation", "Relu"), Ints("kernel_shape", {1, 1})}),
            "y [1,2,3,3] = convolution(x) w[2,2,1,1] bias + relu(0,0)\noutput y\n");
  EXPECT_EQ(Microsoft("FusedConv", {"x", "w", "b", "z"}, {String("activation", "Relu")}),
            "y [1,2,3,3] = convolution(x) w[2,2,1,1] bias + sum(z) + relu(0,0)\noutput y\n");
  EXPECT_EQ(
      Microsoft("FusedConv", {"x", "w", "b"}, {String("activation", "Clip"), Numbers({0, 6})}),
      "y [1,2,3,3] = convolution(x) w[2,2,1,1] bias + bounded_relu(6,0)\noutput y\n");
  EXPECT_EQ(
      Microsoft("FusedConv", {"x", "w"}, {String("activation", "LeakyRelu"), Numbers({0.25f})}),
      "y [1,2,3,3] = convolution(x) w[2,2,1,1] + relu(0.25,0)\noutput y\n");
  EXPECT_EQ(Microsoft("FusedConv", {"x", "w"}),
            "y [1,2,3,3] = convolution(x) w[2,2,1,1]\noutput y\n");
  EXPECT_EQ(
      Microsoft("FusedGemm", {"r", "m", "four"}, {String("activation", "Relu"), Int("transB", 1)}),
      "y [2,4] = inner_product(r) m[4,4] bias + relu(0,0)\noutput y\n");
  EXPECT_THAT(Microsoft("FusedConv", {"x", "w"}, {String("activation", "Unheard")}),
              HasSubstr("activation 'Unheard' with 0 numbers"));
  EXPECT_THAT(Microsoft("FusedConv", {"x", "w"}, {String("activation", "HardSigmoid")}),
              HasSubstr("0 numbers for the activation HardSigmoid"));
}

TEST(MicrosoftTest, Gelus) {
  EXPECT_EQ(Microsoft("Gelu", {"r"}), "y [2,4] = activation(r) gelu_erf(0,0)\noutput y\n");
  EXPECT_EQ(Microsoft("FastGelu", {"r"}), "y [2,4] = activation(r) gelu(0,0)\noutput y\n");
  EXPECT_THAT(Microsoft("BiasGelu", {"r", "four"}), HasSubstr("gelu_erf"));
  EXPECT_THAT(Microsoft("FastGelu", {"r", "four"}), HasSubstr("gelu"));
  EXPECT_THAT(Microsoft("QuickGelu", {"r"}), HasSubstr("y [2,4] = activation(r) swish(1.702,0)"));
}

TEST(MicrosoftTest, SumsThatAreNormalized) {
  const std::string norm = "layer_normalization(";
  EXPECT_THAT(
      Microsoft("SkipLayerNormalization", {"r", "t", "four", "shift"}, {Float("epsilon", 1e-5f)}),
      AllOf(HasSubstr("sum("), HasSubstr(norm)));
  EXPECT_THAT(
      Microsoft("SkipLayerNormalization", {"r", "t", "four", "", "shift"}, {}, {"y", "", "", "s"}),
      AllOf(HasSubstr("output y\noutput s\n"), HasSubstr(norm)));
  EXPECT_THAT(Microsoft("SkipSimplifiedLayerNormalization", {"r", "t", "four"}),
              HasSubstr("reduce"));
  EXPECT_THAT(TextOf("", "SimplifiedLayerNormalization", {"r", "four"}, {"y"}, {}),
              HasSubstr("reduce"));
}

TEST(MicrosoftTest, WhatTheyCompute) {
  OnnxBuilder model(12);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("r", {1, 2}).Input("t", {1, 2}).Floats("scale", {2}, {2, 3}).Floats("b", {2}, {1, 4});
  const auto add = [&](const std::string& op, const std::vector<std::string>& inputs,
                       const std::vector<std::string>& outputs) {
    model.Node(op, inputs, outputs, {Float("epsilon", 1e-5f)});
    model.graph().mutable_node()->rbegin()->set_domain("com.microsoft");
    for (const std::string& output : outputs) {
      if (!output.empty()) model.Output(output);
    }
  };
  add("SkipLayerNormalization", {"r", "t", "scale", "b", "b"}, {"y", "mean", "inverse", "sum"});
  add("SkipSimplifiedLayerNormalization", {"r", "t", "scale"}, {"simple", "", "", "plain"});
  model.Node("LayerNormalization", {"r", "scale", "b"}, {"old"}).Output("old");
  const std::vector<Elements> computed = Computed(model, {{1, 2}, {1, 2}}, {{1, 2}, {3, 6}});
  const double deviation = std::sqrt(3.5 * 3.5 + 1e-5), root = std::sqrt(40 + 1e-5);
  const std::vector<Elements> expected = {{-3.5 / deviation * 2 + 1, 3.5 / deviation * 3 + 4},
                                          {8.5},
                                          {1 / deviation},
                                          {5, 12},
                                          {4 / root * 2, 8 / root * 3},
                                          {4, 8},
                                          {-1, 7}};
  ASSERT_EQ(computed.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectNear(computed[i], expected[i], 1e-4);
  }
}

TEST(MicrosoftTest, FusedProducts) {
  EXPECT_THAT(Microsoft("FusedMatMul", {"r", "m"}, {Int("transBatchA", 1)}),
              HasSubstr("transBatchA"));
  EXPECT_EQ(Microsoft("FusedMatMul", {"r", "m"}),
            "y [2,4] = inner_product(r) m^T[4,4] transposed\noutput y\n");
}

}  // namespace
}  // namespace tilewire::reader
