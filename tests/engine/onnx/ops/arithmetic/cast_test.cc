// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
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

TEST(CastTest, NumbersOfF32BecomeBytesAndTruthValuesAtOnce) {
  EXPECT_EQ(CastText(onnx::TensorProto::FLOAT, onnx::TensorProto::INT8),
            "input x [2]\ny s8 [2] = convert(x)\noutput y\n");
  EXPECT_EQ(CastText(onnx::TensorProto::INT64, onnx::TensorProto::BOOL),
            "input x s64 [2]\ny [2] = and(x, x)\ny bool [2] = convert(y)\noutput y\n");
  EXPECT_EQ(CastText(onnx::TensorProto::UINT8, onnx::TensorProto::BOOL),
            "input x u8 [2]\ny [2] = and(x, x)\ny bool [2] = convert(y)\noutput y\n");
}

TEST(CastTest, IntegersThatF32HoldsAreCutOnce) {
  OnnxBuilder model;
  model.Input("x", {2}).Node("Cast", {"x"}, {"i"}, {Int("to", onnx::TensorProto::INT32)});
  model.Node("Cast", {"i"}, {"j"}, {Int("to", onnx::TensorProto::INT64)});
  model.Node("Cast", {"j"}, {"y"}, {Int("to", onnx::TensorProto::FLOAT)}).Output("y");
  EXPECT_EQ(BuiltText(model, {{2}}), "input x [2]\ni [2] = truncate(x)\noutput i\n");
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

// A type of the model that f32 holds: of an input, an initializer, a result, a graph's result.
TEST(CastTest, LikeTypesThatAreHeldInF32) {
  const std::string in_bf16 = RoundedTo("bf16");
  const auto text = [](const std::string& like) {
    OnnxBuilder then(19), model(19);
    then.Node("Relu", {"b"}, {"t"}).Output("t");
    model.Input("x", {2}).Input("b", {2}, onnx::TensorProto::BFLOAT16);
    model.Tensor("known", {1}, onnx::TensorProto::BFLOAT16)->set_raw_data(std::string(2, 0));
    model.Node("Abs", {"b"}, {"result"}).Node("Not", {"truth"}, {"chosen"});
    model.Tensor("truth", {}, onnx::TensorProto::BOOL)->set_raw_data(std::string(1, 0));
    model.Node("If", {"chosen"}, {"branch"},
               {Graph("then_branch", then), Graph("else_branch", then)});
    model.Node("CastLike", {"x", like}, {"y"}).Output("y", onnx::TensorProto::BFLOAT16);
    const std::string all = BuiltText(model, {{2}, {2}});
    return all.substr(all.find("y/narrow"));
  };
  for (const char* like : {"b", "known", "result", "branch"})
    EXPECT_EQ(text(like), in_bf16) << like;
}

TEST(CastTest, LikeIntegersThatAreKnownOrHeldInF32) {
  OnnxBuilder model(19);
  model.Input("x", {3}).Integers("known", {1}).Node("IsNaN", {"x"}, {"truth"});
  model.Node("CastLike", {"x", "known"}, {"y"}).Output("y", onnx::TensorProto::INT64);
  model.Node("CastLike", {"x", "truth"}, {"b"}).Output("b", onnx::TensorProto::BOOL);
  model.Node("CastLike", {"truth", "y"}, {"z"}).Output("z", onnx::TensorProto::INT64);
  EXPECT_EQ(Computed(model, {{3}}, {{1.9, NAN, 0}}),
            (std::vector<Elements>{{1, 0, 0}, {1, 1, 0}, {0, 1, 0}}));
}

TEST(CastTest, NumbersThatIntegersDoNotHaveBecomeTheNearest) {
  OnnxBuilder model;
  const float infinity = std::numeric_limits<float>::infinity();
  model.Input("x", {4}).Floats("c", {4}, {NAN, infinity, -infinity, -1.5f});
  model.Node("Cast", {"c"}, {"s"}, {Int("to", onnx::TensorProto::INT16)});
  model.Node("Cast", {"c"}, {"u"}, {Int("to", onnx::TensorProto::UINT8)});
  model.Node("Cast", {"x"}, {"i"}, {Int("to", onnx::TensorProto::INT64)});
  model.Output("s", onnx::TensorProto::INT16).Output("u", onnx::TensorProto::UINT8);
  model.Output("i", onnx::TensorProto::INT64);
  EXPECT_EQ(
      Computed(model, {{4}}, {{NAN, 1e30, -1e30, -1.5}}),
      (std::vector<Elements>{{0, 32767, -32768, -1}, {0, 255, 0, 0}, {0, 0x1p63, -0x1p63, -1}}));
}

// To real numbers of few bits the nearest, to integers of few bits the lowest of the rounded ones.
TEST(CastTest, NumbersOfFewBits) {
  const struct {
    int type;
    Elements of_reals, of_integers;
  } cases[] = {{17, {1.625, -448, 0, 3}, {20, -20, 120, 3}},
               {23, {1.5, -6, 0, 3}, {6, -6, 6, 3}},
               {22, {2, 0, 0, 3}, {4, -4, -6, 3}},
               {25, {2, 0, 0, 3}, {0, 0, 2, 3}}};
  for (const auto& [type, of_reals, of_integers] : cases) {
    OnnxBuilder model(25);
    model.Input("x", {4}).Input("i", {4}, onnx::TensorProto::INT32);
    model.Floats("f", {4}, {1.6f, -2000, 0, 3}).Integers("k", {20, -20, 122, 3});
    for (const std::string src : {"x", "i", "f", "k"}) {
      model.Node("Cast", {src}, {src + "s"}, {Int("to", type)});
      model.Node("Cast", {src + "s"}, {src + "y"}, {Int("to", 1)}).Output(src + "y");
    }
    EXPECT_EQ(Computed(model, {{4}, {4}}, {{1.6, -2000, 0, 3}, {20, -20, 122, 3}}),
              (std::vector<Elements>{of_reals, of_integers, of_reals, of_integers}))
        << type;
  }
}

TEST(CastTest, Refusals) {
  ExpectUnimplemented({{"to powers of two", "Cast", {"x"}, {Int("to", 24)}, "to f8e8m0"}});
  OnnxBuilder small(19);
  small.Input("x", {2}).Node("Cast", {"x"}, {"y"}, {Int("to", 17)}).Output("y");
  EXPECT_THAT(BuiltText(small, {{2}}), HasSubstr("output 'y' is declared f32, but has another"));
  ExpectUnimplemented({{"to strings", "Cast", {"x"}, {Int("to", 8)}, "STRING"}});
  ExpectInvalid({{"saturate", "Cast", {"x"}, {Int("to", 1), Int("saturate", 2)}, "saturate 2"}});
}

}  // namespace
}  // namespace tilewire::reader
