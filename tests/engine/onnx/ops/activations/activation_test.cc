// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/activations/activation.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(ActivationTest, Operators) {
  ExpectBuilt({
      {"relu", 13, "Relu", {}, {2, 3}, "y [2,3] = activation(x) relu(0,0)"},
      {"leaky default", 13, "LeakyRelu", {}, {2, 3}, "y [2,3] = activation(x) relu(0.01,0)"},
      {"elu", 13, "Elu", {Float("alpha", 2)}, {2, 3}, "y [2,3] = activation(x) elu(2,0)"},
      {"sigmoid", 13, "Sigmoid", {}, {2, 3}, "y [2,3] = activation(x) logistic(0,0)"},
      {"tanh", 13, "Tanh", {}, {2, 3}, "y [2,3] = activation(x) tanh(0,0)"},
      {"softplus", 13, "Softplus", {}, {2, 3}, "y [2,3] = activation(x) soft_relu(0,0)"},
      {"hard sigmoid",
       13,
       "HardSigmoid",
       {},
       {2, 3},
       "y [2,3] = activation(x) hard_sigmoid(0.2,0.5)"},
      {"hard swish",
       14,
       "HardSwish",
       {},
       {2, 3},
       "y [2,3] = activation(x) hard_swish(0.166667,0.5)"},
      {"relu6 by attributes",
       6,
       "Clip",
       {Float("min", 0), Float("max", 6)},
       {2, 3},
       "y [2,3] = activation(x) bounded_relu(6,0)"},
      {"clip",
       6,
       "Clip",
       {Float("min", -1), Float("max", 1)},
       {2, 3},
       "y [2,3] = activation(x) clip(-1,1)"},
      {"thresholds", 13, "Shrink", {Float("lambd", 1)}, {2, 4}, "y [2,4] = shrink(x) (1,0)"},
  });
}

TEST(ActivationTest, ClipBoundsAreAttributesBeforeOpset11InEveryRealType) {
  const auto text = [](onnx::TensorProto::DataType type) {
    OnnxBuilder model(7);
    model.Input("x", {2}, type).Node("Clip", {"x"}, {"y"}, {Float("min", -0.5)});
    model.Output("y", type);
    return BuiltText(model, {{2}});
  };
  EXPECT_EQ(text(onnx::TensorProto::DOUBLE),
            "input x f64 [2]\ny/min/f64 f64 [1] = literal() elements=1\n"
            "y f64 [2] = max(x, y/min/f64)\noutput y\n");
  EXPECT_THAT(text(onnx::TensorProto::INT32), HasSubstr("before opset 11 it is of real numbers"));
  OnnxBuilder inputs(7);
  inputs.Input("x", {2}).Floats("low", {}, {0}).Node("Clip", {"x", "low"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(inputs, {{2}}), HasSubstr("before opset 11 its bounds are attributes"));
}

TEST(ActivationTest, ClipBoundsAreInputsFromOpset11On) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Floats("low", {}, {0}).Floats("high", {}, {6});
  model.Node("Clip", {"x", "low", "high"}, {"a"})
      .Node("Clip", {"a", "", "high"}, {"b"})
      .Output("b");
  EXPECT_EQ(BuiltText(model, {{2, 3}}),
            "input x [2,3]\na [2,3] = activation(x) bounded_relu(6,0)\n"
            "b [2,3] = activation(a) clip(-3.40282e+38,6)\noutput b\n");
}

}  // namespace
}  // namespace tilewire::reader
