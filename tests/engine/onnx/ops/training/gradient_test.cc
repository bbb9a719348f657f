// SPDX-License-Identifier: Apache-2.0
//
// Gradient (engine/onnx/ops/training/gradient.cc): derivatives that the file asks for, against
// formulas.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

using testing::StatusIs;
using testing::Strings;

// Adds the node, whose inputs are `xs` and `zs`, and the outputs "d_" of each of xs.
void AddGradient(const std::string& y, const std::vector<std::string>& xs,
                 const std::vector<std::string>& zs, OnnxBuilder* model) {
  constexpr char kDomain[] = "ai.onnx.preview.training";
  onnx::OperatorSetIdProto* opset = model->proto().add_opset_import();
  opset->set_domain(kDomain);
  opset->set_version(1);
  std::vector<std::string> inputs = xs, outputs;
  inputs.insert(inputs.end(), zs.begin(), zs.end());
  for (const std::string& x : xs) outputs.push_back("d_" + x);
  std::vector<onnx::AttributeProto> attributes = {Strings("xs", xs), String("y", y)};
  if (!zs.empty()) attributes.push_back(Strings("zs", zs));
  model->Node("Gradient", inputs, outputs, attributes);
  model->graph().mutable_node()->rbegin()->set_domain(kDomain);
  for (const std::string& output : outputs) model->Output(output);
}

TEST(GradientTest, OfNumbersByNumbers) {
  OnnxBuilder model;
  model.Input("a", {}).Input("b", {});
  AddGradient("d", {"a", "b"}, {}, &model);  // before what it differentiates
  model.Node("Add", {"a", "b"}, {"c"}).Node("Mul", {"c", "a"}, {"d"}).Output("d");
  const std::vector<Elements> outputs = Computed(model, {{}, {}}, {{3}, {4}});
  EXPECT_EQ(outputs, (std::vector<Elements>{{10}, {3}, {21}}));  // 2 a + b, a, (a + b) a
}

// y = relu(x) * z, of which the elements are summed.
TEST(GradientTest, OfTensorsWithOthersThatStay) {
  OnnxBuilder model;
  model.Input("x", {2, 2}).Input("z", {2}).Input("unused", {3});
  model.Node("Relu", {"x"}, {"r"}).Node("Mul", {"r", "z"}, {"y"}).Output("y");
  AddGradient("y", {"x", "unused"}, {"z"}, &model);
  const std::vector<Elements> outputs =
      Computed(model, {{2, 2}, {2}, {3}}, {{1, -2, -3, 4}, {5, 7}, {0, 0, 0}});
  EXPECT_EQ(outputs[1], (Elements{5, 0, 0, 7}));
  EXPECT_EQ(outputs[2], (Elements{0, 0, 0}));
}

// The maximum keeps its places for the gradient, so that no pass may merge it into a convolution.
TEST(GradientTest, ThroughAConvolutionAndAMaximum) {
  OnnxBuilder model;
  model.Input("x", {1, 1, 2, 2}).Floats("w", {1, 1, 1, 1}, {3}).Floats("b", {1}, {1});
  model.Node("Conv", {"x", "w", "b"}, {"c"}).Node("Relu", {"c"}, {"r"});
  model.Node("MaxPool", {"r"}, {"y"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  model.Output("y");
  AddGradient("y", {"x"}, {}, &model);
  const auto opened = Open(model);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto network = (*opened)->Specialize({{1, 1, 2, 2}});
  ASSERT_TRUE(network.ok()) << network.status();
  EXPECT_EQ(Interpret(*network, {{1, 4, 2, -3}}), (std::vector<Elements>{{13}, {0, 3, 0, 0}}));
}

TEST(GradientTest, WhatIsRefused) {
  const auto refused = [](absl::StatusCode code, const char* message, auto add) {
    OnnxBuilder model;
    model.Input("x", {2}).Floats("w", {2}).Node("Mul", {"x", "w"}, {"m"});
    model.Node("Tanh", {"m"}, {"y"}).Output("y");
    add(&model);
    EXPECT_THAT(Open(model), StatusIs(code, message));
  };
  constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  refused(kUnimplemented, "'w' is known when the model is loaded",
          [](OnnxBuilder* model) { AddGradient("y", {"w"}, {}, model); });
  refused(kUnimplemented, "xs and zs of which one is computed from another",
          [](OnnxBuilder* model) { AddGradient("y", {"x"}, {"m"}, model); });
  refused(kInvalid, "'nowhere' is defined nowhere",
          [](OnnxBuilder* model) { AddGradient("nowhere", {"x"}, {}, model); });
  refused(kInvalid, "xs names no tensor", [](OnnxBuilder* model) {
    AddGradient("y", {"x"}, {}, model);
    model->graph().mutable_node()->rbegin()->mutable_attribute(0)->clear_strings();
  });
  refused(kUnimplemented, "inputs other than the tensors that xs and zs name",
          [](OnnxBuilder* model) {
            AddGradient("y", {"m"}, {}, model);
            model->graph().mutable_node()->rbegin()->set_input(0, "x");
          });
  refused(kInvalid, "is in a cycle", [](OnnxBuilder* model) {
    AddGradient("z", {"x"}, {}, model);
    model->Node("Relu", {"d_x"}, {"z"});
  });
  OnnxBuilder integers;
  integers.Input("i", {2}, onnx::TensorProto::INT64);
  integers.Node("Neg", {"i"}, {"n"}).Output("n", onnx::TensorProto::INT64);
  AddGradient("n", {"i"}, {}, &integers);
  EXPECT_THAT(Open(integers), StatusIs(kUnimplemented, "'n' is not of f32, f16 or bf16"));
}

TEST(GradientTest, SuchAModelIsNotTrained) {
  OnnxBuilder model;
  model.Input("x", {2}).Floats("w", {2}).Node("Mul", {"x", "w"}, {"y"}).Output("y");
  AddGradient("y", {"x"}, {}, &model);
  const auto opened = Open(model);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_THAT((*opened)->SpecializeForTraining({{2}}, {}),
              StatusIs(absl::StatusCode::kUnimplemented, "computes gradients itself"));
}

}  // namespace
}  // namespace tilewire::reader
