// SPDX-License-Identifier: Apache-2.0
//
// Operators that are written down as others, functions of the file and loops, from the file to the
// answer. The numbers of com.microsoft's operators are those that ONNX Runtime 1.30 gives.
#include <cstdint>

#include "tests/engine/facade/typed_model.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

const std::vector<uint8_t> kX = {0, 100, 119, 120, 121, 130, 200, 255};
const std::vector<uint8_t> kV = {255, 3, 120, 7, 50, 125, 110, 0};

// Inputs x and v of u8 [1,2,2,2] at 0.5 around 120; results at 0.25 around 100.
OnnxBuilder QuantizedInputs() {
  OnnxBuilder model;
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  model.Input("x", {1, 2, 2, 2}, TensorProto::UINT8).Input("v", {1, 2, 2, 2}, TensorProto::UINT8);
  model.Floats("s", {}, {0.5f}).Bytes("z", {}, false, {120});
  return model.Floats("ys", {}, {0.25f}).Bytes("yz", {}, false, {100});
}

void ExpectOf(const std::string& op, const std::vector<std::string>& inputs,
              const std::vector<onnx::AttributeProto>& attributes,
              const std::vector<uint8_t>& expected) {
  SCOPED_TRACE(op);
  OnnxBuilder model = QuantizedInputs();
  model.Node(op, inputs, {"y"}, attributes).Output("y", TensorProto::UINT8);
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  ExpectAnswer<uint8_t>(model, {Bytes(kX), Bytes(kV)}, expected);
}

TEST(ComposedOperatorsTest, AsOnnxRuntime) {
  const std::vector<std::string> two = {"x", "s", "z", "v", "s", "z", "ys", "yz"};
  const std::vector<std::string> one = {"x", "s", "z", "ys", "yz"};
  ExpectOf("QLinearAdd", two, {}, {130, 0, 98, 0, 0, 130, 240, 130});
  ExpectOf("QLinearMul", two, {}, {0, 255, 100, 100, 30, 150, 0, 0});
  ExpectOf("QLinearSigmoid", one, {}, {100, 100, 102, 102, 102, 104, 104, 104});
  ExpectOf("QLinearLeakyRelu", one, {Float("alpha", 0.25f)},
           {40, 90, 100, 100, 102, 120, 255, 255});
  ExpectOf("QLinearGlobalAveragePool", one, {}, {30, 213});
  ExpectOf("QLinearAveragePool", one,
           {Ints("kernel_shape", {2, 1}), Int("count_include_pad", 1), Ints("pads", {1, 0, 0, 0})},
           {0, 80, 0, 80, 101, 110, 181, 245});
  ExpectOf("QLinearConcat", {"ys", "yz", "x", "s", "z", "v", "s", "z"}, {Int("axis", 1)},
           {0, 60, 98, 100, 102, 120, 255, 255, 255, 0, 100, 0, 0, 110, 80, 0});
}

TEST(ComposedOperatorsTest, QGemmAsOnnxRuntime) {
  for (const bool is_half : {false, true}) {
    OnnxBuilder model = QuantizedInputs();
    model.Input("a", {2, 4}, TensorProto::UINT8);
    model.Bytes("b", {3, 4}, true, {1, -2, 3, -4, 5, -6, 7, -8, 9, -10, 11, -12});
    model.Floats("bs", {3}, {0.5f, 0.25f, 2}).Bytes("bz", {3}, true, {0, 0, 0});
    onnx::TensorProto* bias = model.Tensor("c", {3}, TensorProto::INT32);
    for (int one : {10, -20, 30}) bias->add_int32_data(one);
    model.Node("QGemm", {"a", "s", "z", "b", "bs", "bz", "c", "ys", "yz"}, {"y"},
               {Float("alpha", is_half ? 0.5f : 1), Int("transB", 1)});
    model.graph().mutable_node(0)->set_domain("com.microsoft");
    model.Output("y", TensorProto::UINT8);
    const std::vector<uint8_t> a = {100, 110, 120, 130, 140, 150, 160, 170};
    ExpectAnswer<uint8_t>(model, {Bytes(kX), Bytes(kV), Bytes(a)},
                          is_half ? std::vector<uint8_t>{85, 65, 0, 45, 45, 0}
                                  : std::vector<uint8_t>{70, 30, 0, 0, 0, 0});
  }
}

// The weights are 1s times the height of the input.
TEST(ComposedOperatorsTest, WeightsThatDependOnASizeAreThoseOfThatSize) {
  OnnxBuilder model;
  model.Input("x", {1, 2, -1, 2}).Floats("ones", {2, 2}, {1, 1, 1, 1}).Integers("two", {2});
  model.Node("Shape", {"x"}, {"dims"}).Node("Gather", {"dims", "two"}, {"h"});
  model.Node("Cast", {"h"}, {"height"}, {Int("to", TensorProto::FLOAT)});
  model.Node("Mul", {"ones", "height"}, {"w"}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const int64_t height : {1, 3, 2}) {
    const std::vector<float> x(4 * height, 1);
    const std::string bytes = Bytes(x);
    const auto answer = (*loaded)->Run({{{1, 2, height, 2}, Layout::kNchw, {bytes}}}, {}, {});
    ASSERT_TRUE(answer.ok()) << answer.status();
    float first;
    std::memcpy(&first, (*answer)[0].bytes.data(), sizeof(first));
    EXPECT_EQ(first, 2 * static_cast<float>(height));
  }
}

}  // namespace
}  // namespace tilewire::testing
