// SPDX-License-Identifier: Apache-2.0
//
// Operators that ONNX Runtime's quantisers write
// (engine/onnx/ops/quantized/microsoft_quantized.cc), against the operators' formulas on real
// numbers.
#include <cmath>
#include <functional>

#include "tests/engine/onnx/fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::reader {
namespace {

constexpr double kXScale = 0.5, kYScale = 0.25;
constexpr int kXZero = 120, kYZero = 100;

// The tensors that the cases name: x and v are given at run time.
OnnxBuilder MicrosoftModel() {
  OnnxBuilder model;
  model.proto().add_opset_import()->set_domain("com.microsoft");
  model.proto().mutable_opset_import(1)->set_version(1);
  model.Input("x", {1, 2, 2, 2}, onnx::TensorProto::UINT8);
  model.Input("v", {1, 2, 2, 2}, onnx::TensorProto::UINT8);
  model.Floats("s", {}, {kXScale}).Bytes("z", {}, false, {kXZero});
  model.Floats("ys", {}, {kYScale}).Bytes("yz", {}, false, {kYZero});
  return model;
}

void AddMicrosoft(OnnxBuilder* model, const std::string& op, const std::vector<std::string>& inputs,
                  const std::vector<std::string>& outputs,
                  const std::vector<onnx::AttributeProto>& attributes = {}) {
  model->Node(op, inputs, outputs, attributes);
  model->graph().mutable_node()->rbegin()->set_domain("com.microsoft");
}

const Elements kX = {0, 100, 119, 120, 121, 130, 200, 255}, kV = {255, 3, 120, 7, 50, 125, 110, 0};
const std::vector<Dims> kDims = {{1, 2, 2, 2}, {1, 2, 2, 2}};

double Real(double integer) { return (integer - kXZero) * kXScale; }
double Quantized8(double real) {
  return std::min(255.0, std::max(0.0, std::nearbyint(real / kYScale) + kYZero));
}
// Element by element.
Elements Expected(const std::function<double(double, double)>& function) {
  Elements expected;
  for (size_t i = 0; i < kX.size(); ++i)
    expected.push_back(Quantized8(function(Real(kX[i]), Real(kV[i]))));
  return expected;
}

// The oracle's result of the operator's network for kX and kV.
Elements ComputedBy(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<onnx::AttributeProto>& attributes = {}) {
  OnnxBuilder model = MicrosoftModel();
  AddMicrosoft(&model, op, inputs, {"y"}, attributes);
  model.Output("y", onnx::TensorProto::UINT8);
  const std::vector<Elements> computed = Computed(model, kDims, {kX, kV});
  return computed.empty() ? Elements() : computed[0];
}

TEST(MicrosoftQuantizedTest, FunctionsOfElements) {
  const std::vector<std::string> two = {"x", "s", "z", "v", "s", "z", "ys", "yz"};
  const std::vector<std::string> one = {"x", "s", "z", "ys", "yz"};
  EXPECT_EQ(ComputedBy("QLinearAdd", two), Expected([](double a, double b) { return a + b; }));
  EXPECT_EQ(ComputedBy("QLinearMul", two), Expected([](double a, double b) { return a * b; }));
  EXPECT_EQ(ComputedBy("QLinearSigmoid", one),
            Expected([](double a, double) { return 1 / (1 + std::exp(-a)); }));
  EXPECT_EQ(ComputedBy("QLinearLeakyRelu", one, {Float("alpha", 0.25f)}),
            Expected([](double a, double) { return a < 0 ? a / 4 : a; }));
  EXPECT_EQ(ComputedBy("QLinearLeakyRelu", one),
            Expected([](double a, double) { return a < 0 ? a * double{0.01f} : a; }));
}

TEST(MicrosoftQuantizedTest, PartsAndPools) {
  Elements both;
  for (const Elements& part : {kX, kV}) {
    for (double integer : part) both.push_back(Quantized8(Real(integer)));
  }
  EXPECT_EQ(
      ComputedBy("QLinearConcat", {"ys", "yz", "x", "s", "z", "v", "s", "z"}, {Int("axis", 1)}),
      both);
  const std::vector<std::string> one = {"x", "s", "z", "ys", "yz"};
  Elements means;
  for (int c = 0; c < 2; ++c) {
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += Real(kX[4 * c + i]);
    means.push_back(Quantized8(sum / 4));
  }
  EXPECT_EQ(ComputedBy("QLinearGlobalAveragePool", one, {Int("channels_last", 0)}), means);
  EXPECT_EQ(ComputedBy("QLinearAveragePool", one, {Ints("kernel_shape", {2, 2})}), means);
  Elements columns;
  for (int i : {0, 1, 4, 5}) columns.push_back(Quantized8((Real(kX[i]) + Real(kX[i + 2])) / 2));
  EXPECT_EQ(
      ComputedBy("QLinearAveragePool", one,
                 {Ints("kernel_shape", {2, 1}), Int("ceil_mode", 0), String("auto_pad", "NOTSET")}),
      columns);
}

TEST(MicrosoftQuantizedTest, SoftmaxOfAnAxisOrOfRows) {
  const std::vector<std::string> one = {"x", "s", "z", "ys", "yz"};
  const auto softmax = [](const std::vector<std::vector<int>>& rows) {
    Elements expected(8);
    for (const std::vector<int>& row : rows) {
      double sum = 0;
      for (int i : row) sum += std::exp(Real(kX[i]));
      for (int i : row) expected[i] = Quantized8(std::exp(Real(kX[i])) / sum);
    }
    return expected;
  };
  EXPECT_EQ(ComputedBy("QLinearSoftmax", one, {Int("axis", 1), Int("opset", 13)}),
            softmax({{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(ComputedBy("QLinearSoftmax", one, {Int("axis", 2), Int("opset", 12)}),
            softmax({{0, 1, 2, 3}, {4, 5, 6, 7}}));
}

// The same as attention to the real numbers, with past keys and positions that are left out.
TEST(MicrosoftQuantizedTest, QAttentionIsAttentionToRealNumbers) {
  const auto attention = [](bool is_quantized) {
    OnnxBuilder model = MicrosoftModel();
    model.Input("a", {1, 3, 4}, onnx::TensorProto::UINT8).Input("past", {2, 1, 2, 2, 2});
    model.Bytes("w", {4, 12}, true).Floats("ws", {12}, std::vector<float>(12, 0.01f));
    model.Bytes("wz", {12}, true).Floats("bias", {12});
    const std::vector<onnx::AttributeProto> heads = {Int("num_heads", 2)};
    if (is_quantized) {
      AddMicrosoft(&model, "QAttention", {"a", "w", "bias", "s", "ws", "", "z", "wz", "past"},
                   {"y", "present"}, heads);
    } else {
      model.Node("DequantizeLinear", {"a", "s", "z"}, {"b"});
      model.Node("DequantizeLinear", {"w", "ws", "wz"}, {"wr"}, {Int("axis", 1)});
      AddMicrosoft(&model, "Attention", {"b", "wr", "bias", "", "past"}, {"y", "present"}, heads);
    }
    model.Output("y").Output("present");
    return Computed(model, {{1, 2, 2, 2}, {1, 2, 2, 2}, {1, 3, 4}, {2, 1, 2, 2, 2}},
                    {kX,
                     kV,
                     {0, 100, 119, 120, 121, 130, 200, 255, 1, 2, 3, 4},
                     {1, -1, 0.5, 2, 3, -2, 0, 1, 2, 2, -1, 0, 0.25, 1, -3, 1}});
  };
  const std::vector<Elements> quantized = attention(true), real = attention(false);
  ASSERT_EQ(quantized.size(), 2u);
  EXPECT_EQ(quantized, real);
}

// y = alpha * A * B + C, where C counts steps of alpha * 0.5 * the column's scale of B.
TEST(MicrosoftQuantizedTest, QGemm) {
  const std::vector<int> b = {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12};  // [3, 4]
  const std::vector<float> b_scale = {0.5f, 0.25f, 2};
  const int c[] = {10, -20, 30};
  const Elements a = {100, 110, 120, 130, 140, 150, 160, 170};  // [2, 4]
  for (const bool quantizes : {true, false}) {
    for (const float alpha : {1.0f, 0.5f}) {
      OnnxBuilder model = MicrosoftModel();
      model.Input("a", {2, 4}, onnx::TensorProto::UINT8).Bytes("b", {3, 4}, true, b);
      model.Floats("bs", {3}, b_scale).Bytes("bz", {3}, true, {0, 0, 0});
      onnx::TensorProto* bias = model.Tensor("c", {3}, onnx::TensorProto::INT32);
      for (int one : c) bias->add_int32_data(one);
      std::vector<std::string> inputs = {"a", "s", "z", "b", "bs", "bz", "c"};
      if (quantizes) inputs.insert(inputs.end(), {"ys", "yz"});
      AddMicrosoft(&model, "QGemm", inputs, {"y"}, {Float("alpha", alpha), Int("transB", 1)});
      model.Output("y", quantizes ? onnx::TensorProto::UINT8 : onnx::TensorProto::FLOAT);
      Elements expected;
      for (int m = 0; m < 2; ++m) {
        for (int n = 0; n < 3; ++n) {
          double sum = c[n];
          for (int k = 0; k < 4; ++k) sum += (a[4 * m + k] - kXZero) * b[4 * n + k];
          const double real = double{alpha} * kXScale * b_scale[n] * sum;
          expected.push_back(quantizes ? Quantized8(real) : real);
        }
      }
      EXPECT_EQ(Computed(model, {kDims[0], kDims[1], {2, 4}}, {kX, kV, a})[0], expected);
    }
  }
}

TEST(MicrosoftQuantizedTest, ProductsOfDynamicallyQuantizedNumbers) {
  OnnxBuilder model = MicrosoftModel();
  model.Input("a", {2, 2}, onnx::TensorProto::UINT8).Bytes("b", {2, 2}, true, {1, -2, 3, -4});
  model.Floats("bs", {2}, {0.5f, 2}).Bytes("bz", {2}, true, {0, 0}).Floats("bias", {2}, {1, -1});
  AddMicrosoft(&model, "MatMulIntegerToFloat", {"a", "b", "s", "bs", "z", "bz", "bias"}, {"y"});
  model.Input("r", {2, 2}).Floats("b1", {}, {0.5f});
  AddMicrosoft(&model, "DynamicQuantizeMatMul", {"r", "b", "b1"}, {"d"});
  model.Output("y").Output("d");
  // r is quantized to itself times 1 / 255 of its range, [-55, 200].
  const std::vector<Elements> computed =
      Computed(model, {kDims[0], kDims[1], {2, 2}, {2, 2}},
               {kX, kV, {122, 118, 120, 124}, {-55, 200, 3, 10}});
  EXPECT_EQ(computed[0], (Elements{(2 * 1 - 2 * 3) * 0.25 + 1, (-2 * 2 + 2 * 4) - 1.0,
                                   4 * 3 * 0.25 + 1, -16 - 1.0}));
  EXPECT_EQ(computed[1],
            (Elements{(-55 + 600) / 2.0, (110 - 800) / 2.0, (3 + 30) / 2.0, (-6 - 40) / 2.0}));
}

TEST(MicrosoftQuantizedTest, PassesFoldThemIntoIntegers) {
  OnnxBuilder conv = MicrosoftModel();
  conv.Bytes("w", {3, 2, 1, 1}, true).Bytes("wz", {}, true, {0});
  AddMicrosoft(&conv, "QLinearConv", {"x", "s", "z", "w", "s", "wz", "ys", "yz"}, {"c"});
  AddMicrosoft(&conv, "DequantizeLinear", {"c", "ys", "yz"}, {"real"});
  AddMicrosoft(&conv, "QuantizeLinear", {"real", "s", "z"}, {"y"});
  conv.Output("y", onnx::TensorProto::UINT8);
  EXPECT_THAT(AfterPasses(conv, kDims), HasSubstr(" u8 [1,3,2,2] = convolution(x) "));
  OnnxBuilder model = MicrosoftModel();
  AddMicrosoft(&model, "QLinearAdd", {"x", "s", "z", "v", "s", "z", "ys", "yz"}, {"y"});
  model.Output("y", onnx::TensorProto::UINT8);
  EXPECT_THAT(AfterPasses(model, kDims), HasSubstr("y u8 [1,2,2,2] = integer_sum(x, v)"));
  OnnxBuilder gemm = MicrosoftModel();
  gemm.Input("a", {2, 4}, onnx::TensorProto::UINT8).Bytes("b", {4, 3}, true);
  gemm.Floats("bs", {3}, {1, 2, 3}).Bytes("bz", {3}, true, {0, 0, 0});
  AddMicrosoft(&gemm, "QGemm", {"a", "s", "z", "b", "bs", "bz", "", "ys", "yz"}, {"y"});
  gemm.Output("y", onnx::TensorProto::UINT8);
  EXPECT_THAT(AfterPasses(gemm, {kDims[0], kDims[1], {2, 4}}),
              AllOf(HasSubstr("y u8 [2,3] = inner_product(a)"), HasSubstr("from 0.5@120 to")));
}

TEST(MicrosoftQuantizedTest, Refusals) {
  const auto refused = [](const std::string& op, const std::vector<std::string>& inputs,
                          const std::vector<onnx::AttributeProto>& attributes) {
    OnnxBuilder model = MicrosoftModel();
    AddMicrosoft(&model, op, inputs, {"y"}, attributes);
    return std::string(Open(model.Output("y", onnx::TensorProto::UINT8)).status().message());
  };
  const std::vector<std::string> one = {"x", "s", "z", "ys", "yz"};
  EXPECT_THAT(refused("QLinearGlobalAveragePool", one, {Int("channels_last", 1)}),
              HasSubstr("channels_last 1; supported is 0"));
  EXPECT_THAT(refused("QLinearConcat", {"ys", "yz", "x", "s", "z", "v"}, {Int("axis", 1)}),
              HasSubstr("6 inputs"));
  EXPECT_THAT(refused("QLinearSigmoid", {"x", "s", "", "ys", "yz"}, {}),
              HasSubstr("input 2 is missing"));
  EXPECT_THAT(refused("QGemm", {"x", "s", "z", "v", "s", "z", "", "ys"}, {}),
              HasSubstr("the zero point of Y is missing"));
  EXPECT_THAT(refused("QLinearSigmoid", one, {Int("axis", 1)}), HasSubstr("unknown attribute"));
}

}  // namespace
}  // namespace tilewire::reader
