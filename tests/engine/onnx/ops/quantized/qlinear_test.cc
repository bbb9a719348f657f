// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/quantized/qlinear.cc become.
#include "tests/engine/onnx/quantized_model.h"

namespace tilewire::reader {
namespace {

TEST(QLinearTest, QuantisedConvolutionWithComputedWeightsAndScales) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 4, 4}).Input("w", {3, 2, 1, 1}).Integers("bias", {1, 2, 3});
  model.Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Node("DynamicQuantizeLinear", {"w"}, {"wq", "ws", "wz"});
  model.Node("QLinearConv", {"q", "s", "z", "wq", "ws", "wz", "s", "z", "bias"}, {"y"});
  model.Node("ConvInteger", {"q", "wq", "z", "wz"}, {"i"}).Output("y").Output("i");
  const std::string text = BuiltText(model, {{1, 2, 4, 4}, {3, 2, 1, 1}});
  EXPECT_THAT(text,
              HasSubstr("y/real [1,3,4,4] = computed_convolution(y/src, y/weights, y/bias4)"));
  EXPECT_THAT(text, HasSubstr("y u8 [1,3,4,4] = quantize("));
  EXPECT_THAT(text, HasSubstr("i [1,3,4,4] = computed_convolution(i/src, i/weights)"));
}

// A convolution of dynamically quantized numbers, with its scales and bias after it.
std::string DynamicText(const std::vector<float>& step_of_weights, bool shares_sums) {
  OnnxBuilder model(13);
  model.Input("x", {1, 6, 4, 4}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Bytes("w", {4, 6, 3, 3}, true)
      .Node("ConvInteger", {"q", "w", "z"}, {"i"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Cast", {"i"}, {"r"}, {Int("to", onnx::TensorProto::FLOAT)});
  model.Floats("ws", {}, step_of_weights).Node("Mul", {"s", "ws"}, {"step"});
  model.Node("Mul", {"step", "r"}, {"p"}).Floats("b", {1, 4, 1, 1});
  model.Node("Add", {"p", "b"}, {"a"}).Node("Relu", {"a"}, {"y"}).Output("y");
  if (shares_sums) model.Output("r");
  return AfterPasses(model, {{1, 6, 4, 4}});
}

TEST(QLinearTest, DynamicallyQuantizedConvolutionsAreOneOperation) {
  const std::string text = DynamicText({0.25f}, false);
  EXPECT_THAT(text, HasSubstr("q/range [2] = quantization_range(x)"));
  EXPECT_THAT(text, HasSubstr("y [1,4,4,4] = dynamic_convolution(x, q/range) "));
  EXPECT_THAT(text, HasSubstr(" pads=[1,1],[1,1] + relu(0,0)"));
  EXPECT_THAT(DynamicText({0.25f}, true), Not(HasSubstr("dynamic_convolution")));
  EXPECT_THAT(DynamicText({0}, false), Not(HasSubstr("dynamic_convolution")));
}

// u8 weights have one zero point; those of groups only one that makes them s8.
TEST(QLinearTest, DynamicallyQuantizedConvolutionsByShiftedWeights) {
  const auto text = [](int zero, int64_t groups) {
    OnnxBuilder model(13);
    model.Input("x", {1, 6, 4, 4}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
    model.Tensor("wz", {}, onnx::TensorProto::UINT8)
        ->set_raw_data(std::string(1, static_cast<char>(zero)));
    model.Bytes("w", {4, 6 / groups, 1, 1}, false)
        .Node("ConvInteger", {"q", "w", "z", "wz"}, {"i"}, {Int("group", groups)});
    model.Node("Cast", {"i"}, {"r"}, {Int("to", onnx::TensorProto::FLOAT)});
    model.Node("Mul", {"r", "s"}, {"y"}).Output("y");
    return AfterPasses(model, {{1, 6, 4, 4}});
  };
  for (const int zero : {0, 117, 128, 255})
    EXPECT_THAT(text(zero, 1), HasSubstr("y [1,4,4,4] = dynamic_convolution(x, q/range) "));
  EXPECT_THAT(text(128, 2), HasSubstr("dynamic_convolution"));
  EXPECT_THAT(text(117, 2), Not(HasSubstr("dynamic_convolution")));
}

// A product of two matrices, with the product of their scales and a factor.
TEST(QLinearTest, ProductsOfDynamicallyQuantizedMatricesAreOneOperation) {
  const auto text = [](const std::string& scale) {
    OnnxBuilder model(13);
    model.Input("x", {2, 3, 6}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
    model.Input("m", {2, 6, 4}).Node("DynamicQuantizeLinear", {"m"}, {"p", "t", "u"});
    model.Node("MatMulInteger", {"q", "p", "z", "u"}, {"i"});
    model.Node("Cast", {"i"}, {"r"}, {Int("to", onnx::TensorProto::FLOAT)});
    model.Node("Mul", {"s", scale}, {"both"}).Floats("f", {}, {0.5f});
    model.Node("Mul", {"both", "f"}, {"step"}).Node("Mul", {"r", "step"}, {"y"}).Output("y");
    return AfterPasses(model, {{2, 3, 6}, {2, 6, 4}});
  };
  EXPECT_THAT(text("t"),
              HasSubstr("y [2,3,4] = dynamic_matmul(q, q/range, p, p/range) scale=0.5\n"));
  EXPECT_THAT(text("s"), Not(HasSubstr("dynamic_matmul")));
}

// With one scale of the weights, or one for each column.
TEST(QLinearTest, DynamicallyQuantizedProductsAreOneOperation) {
  for (const std::vector<int64_t>& scales : {std::vector<int64_t>(), {5}}) {
    OnnxBuilder model(13);
    model.Input("x", {2, 3, 6}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
    model.Bytes("w", {6, 5}, true).Node("MatMulInteger", {"q", "w", "z"}, {"i"});
    model.Node("Cast", {"i"}, {"r"}, {Int("to", onnx::TensorProto::FLOAT)});
    std::vector<float> steps = {0.25f, 0.5f, 1.0f, 2.0f, 0.125f};
    if (scales.empty()) steps.resize(1);
    model.Floats("ws", scales, steps).Node("Mul", {"s", "ws"}, {"step"});
    model.Node("Mul", {"r", "step"}, {"p"}).Floats("b", {5}).Node("Add", {"p", "b"}, {"a"});
    model.Node("Relu", {"a"}, {"y"}).Output("y");
    EXPECT_THAT(AfterPasses(model, {{2, 3, 6}}),
                HasSubstr("y [2,3,5] = dynamic_inner_product(x, q/range) "));
  }
}

// The sums of MatMulInteger, short and long, and the result of QLinearMatMul.
TEST(QLinearTest, ProductsOfComputedMatricesAreOfIntegers) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {2, 3, 4}).Input("m", {4, 5}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("QuantizeLinear", {"m", "s", "zs"}, {"p"});
  model.Node("MatMulInteger", {"q", "p", "z"}, {"i"}).Output("i");
  model.Node("QLinearMatMul", {"q", "s", "z", "p", "s", "zs", "s", "z0"}, {"y"}).Output("y");
  const std::string text = AfterPasses(model, {{2, 3, 4}, {4, 5}});
  EXPECT_THAT(text, HasSubstr("i [2,3,5] = integer_matmul(q, i/right/integers) from 1@128, 1@0\n"));
  EXPECT_THAT(text, HasSubstr("y u8 [2,3,5] = integer_matmul(q, y/right/integers) from "
                              "0.5@128, 0.5@0 to 0.5@0\n"));
  OnnxBuilder sums = QuantizedModel();
  sums.Input("x", {2, 300}).Input("m", {300, 5}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  sums.Node("QuantizeLinear", {"m", "s", "zs"}, {"p"});
  sums.Node("MatMulInteger", {"q", "p", "z", "zs"}, {"y"});
  sums.Output("y", onnx::TensorProto::INT32);
  EXPECT_THAT(AfterPasses(sums, {{2, 300}, {300, 5}}),
              HasSubstr("y s32 [2,5] = integer_matmul(q, p) from 1@128, 1@0\n"));
}

TEST(QLinearTest, KnownIntegersLessComputedZeroPoints) {
  OnnxBuilder model(13);
  model.Input("a", {1, 2}, onnx::TensorProto::UINT8).Input("z", {2}, onnx::TensorProto::INT8);
  model.Bytes("b", {2, 2}, true, {1, -2, 3, -4}).Node("MatMulInteger", {"a", "b", "", "z"}, {"y"});
  model.Output("y", onnx::TensorProto::INT32);
  EXPECT_EQ(Computed(model, {{1, 2}, {2}}, {{2, 5}, {1, -1}})[0],
            (Elements{2 * 0 + 5 * 2, 2 * -1 + 5 * -3}));
}

TEST(QLinearTest, IntegerOperatorsAreConvolutionsOfIntegers) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 5, 5}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Bytes("w", {3, 2, 1, 1}, true).Node("ConvInteger", {"q", "w", "z"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(model, {{1, 2, 5, 5}}),
              HasSubstr("y [1,3,5,5] = convolution(q) y/weights[3,2,1,1] scaled from 1@128\n"));
  OnnxBuilder conv = QuantizedModel();
  conv.Input("x", {1, 2, 5, 5}).Node("QuantizeLinear", {"x", "s", "z0"}, {"q"});
  conv.Bytes("w", {3, 2, 1, 1}, true).Tensor("b", {3}, onnx::TensorProto::INT32)->add_int32_data(1);
  conv.graph().mutable_initializer()->rbegin()->mutable_int32_data()->Resize(3, 7);
  conv.Node("QLinearConv", {"q", "s", "z0", "w", "s3", "z3", "s", "zs", "b"}, {"p"});
  conv.Node("DequantizeLinear", {"p", "s", "zs"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(conv, {{1, 2, 5, 5}}),
              HasSubstr("p s8 [1,3,5,5] = convolution(q) p/weights[3,2,1,1] scaled bias from 0.5@0 "
                        "to 0.5@0\n"));
}

}  // namespace
}  // namespace tilewire::reader
