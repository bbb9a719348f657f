// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(BitwiseTest, FunctionsKeepTheType) {
  OnnxBuilder model(18);
  model.Input("x", {2}, onnx::TensorProto::UINT8).Integers("c", {15, 16});
  model.Node("BitwiseAnd", {"x", "c"}, {"a"}).Node("BitwiseNot", {"a"}, {"b"});
  model.Node("BitShift", {"b", "x"}, {"y"}, {String("direction", "LEFT")});
  model.Output("y", onnx::TensorProto::UINT8);
  EXPECT_EQ(BuiltText(model, {{2}}),
            "input x u8 [2]\n"
            "a/c/u8 u8 [2] = literal() elements=2\n"
            "a u8 [2] = bit_and(x, a/c/u8)\n"
            "b u8 [2] = bit_not(a)\n"
            "y u8 [2] = shift_left(b, x)\n"
            "output y\n");
}

TEST(BitwiseTest, IntegersThatF32HoldsGetTheirType) {
  OnnxBuilder model(18);
  model.Input("x", {2}).Node("Cast", {"x"}, {"i"}, {Int("to", onnx::TensorProto::INT32)});
  model.Node("BitwiseNot", {"i"}, {"y"}).Output("y", onnx::TensorProto::INT32);
  EXPECT_EQ(BuiltText(model, {{2}}),
            "input x [2]\ni [2] = truncate(x)\ny/i/s32 s32 [2] = convert(i)\n"
            "y s32 [2] = bit_not(y/i/s32)\noutput y\n");
}

TEST(BitwiseTest, ConstantsFold) {
  OnnxBuilder model(18);
  model.Input("x", {2}).Integers("a", {12, 3}).Integers("b", {10, -1});
  model.Node("BitwiseXor", {"a", "b"}, {"c"}).Node("Cast", {"c"}, {"f"}, {Int("to", 1)});
  model.Node("Add", {"x", "f"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2}}, {{0, 0}}), (std::vector<Elements>{{6, -4}}));
}

TEST(BitwiseTest, Refusals) {
  ExpectInvalid({
      {"no direction", "BitShift", {"shape", "shape"}, {}, "'direction' is missing"},
      {"another one", "BitShift", {"shape", "shape"}, {String("direction", "UP")}, "'UP'"},
  });
  ExpectInvalid({{"real numbers", "BitwiseNot", {"x"}, {}, "it is of integers", 18}});
}

}  // namespace
}  // namespace tilewire::reader
