// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

// A Cast of x, of one type, to another.
std::string CastText(onnx::TensorProto::DataType from, onnx::TensorProto::DataType to) {
  OnnxBuilder model;
  model.Input("x", {2}, from).Node("Cast", {"x"}, {"y"}, {Int("to", to)}).Output("y", to);
  return BuiltText(model, {{2}});
}

// x rounded to a narrow type, held in f32 and answered in that type.
std::string RoundedTo(const std::string& type) {
  return "y/narrow " + type + " [2] = convert(x)\ny [2] = convert(y/narrow)\ny " + type +
         " [2] = convert(y)\noutput y\n";
}

TEST(CastTest, WideTypesBecomeTheOtherType) {
  EXPECT_EQ(CastText(onnx::TensorProto::INT64, onnx::TensorProto::UINT16),
            "input x s64 [2]\ny u16 [2] = convert(x)\noutput y\n");
  EXPECT_EQ(CastText(onnx::TensorProto::INT64, onnx::TensorProto::INT64),
            "input x s64 [2]\noutput x\n");
  EXPECT_EQ(CastText(onnx::TensorProto::DOUBLE, onnx::TensorProto::FLOAT16),
            "input x f64 [2]\n" + RoundedTo("f16"));
}

TEST(CastTest, NumbersOfF32StayThere) {
  EXPECT_EQ(CastText(onnx::TensorProto::FLOAT, onnx::TensorProto::INT32),
            "input x [2]\ny [2] = truncate(x)\ny s32 [2] = convert(y)\noutput y\n");
  EXPECT_EQ(CastText(onnx::TensorProto::FLOAT, onnx::TensorProto::BFLOAT16),
            "input x [2]\n" + RoundedTo("bf16"));
}

TEST(CastTest, ConstantsAreCutAndRounded) {
  OnnxBuilder model;
  model.Input("x", {3}).Integers("c", {300, -1, 70000});
  model.Node("Cast", {"c"}, {"u"}, {Int("to", onnx::TensorProto::UINT16)});
  model.Node("Cast", {"u"}, {"h"}, {Int("to", onnx::TensorProto::FLOAT16)});
  model.Node("Add", {"x", "h"}, {"y"}).Output("y");
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Computed(model, {{3}}, {{0, 0, 0}}), (std::vector<Elements>{{300, infinity, 4464}}));
}

TEST(CastTest, LikeTheTypeThatIsHeld) {
  OnnxBuilder model(19);
  model.Input("x", {3}).Input("i", {1}, onnx::TensorProto::INT32);
  model.Input("u", {1}, onnx::TensorProto::UINT8).Floats("f", {1});
  model.Node("CastLike", {"x", "i"}, {"y"}).Output("y", onnx::TensorProto::INT32);
  model.Node("CastLike", {"x", "u"}, {"b"}, {Int("saturate", 1)});
  model.Node("CastLike", {"y", "f"}, {"z"}).Output("b", onnx::TensorProto::UINT8).Output("z");
  EXPECT_EQ(Computed(model, {{3}, {1}, {1}}, {{1.9, -2.9, 200.5}, {0}, {0}}),
            (std::vector<Elements>{{1, -2, 200}, {1, 0, 200}, {1, -2, 200}}));
}

TEST(CastTest, Refusals) {
  ExpectUnimplemented(
      {{"of no type", "CastLike", {"x", "shape"}, {}, "whose type is not kept", 15}});
  ExpectUnimplemented({{"to strings", "Cast", {"x"}, {Int("to", 8)}, "STRING"}});
  ExpectInvalid({{"saturate", "Cast", {"x"}, {Int("to", 1), Int("saturate", 2)}, "saturate 2"}});
}

}  // namespace
}  // namespace tilewire::graph
