// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/arithmetic/elementwise.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(ElementwiseTest, SumsConcatsAndConstants) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 3, 3}).Floats("scalar", {}, {3}).Floats("channels", {2, 1, 1}, {1, 2});
  model.Node("Add", {"x", "scalar"}, {"a"})
      .Node("Mul", {"a", "channels"}, {"b"})
      .Node("Sub", {"scalar", "b"}, {"c"});
  model.Node("Add", {"a", "c"}, {"d"})
      .Node("Concat", {"a", "d"}, {"e"}, {Int("axis", -3)})
      .Output("e");
  EXPECT_EQ(BuiltText(model, {{1, 2, 3, 3}}),
            "input x [1,2,3,3]\n"
            "a [1,2,3,3] = activation(x) linear(1,3)\n"
            "b [1,2,3,3] = convolution(a) b[2,1,1,1] bias groups=2\n"
            "c [1,2,3,3] = activation(b) linear(-1,3)\n"
            "d [1,2,3,3] = sum(a, c)\n"
            "e [1,4,3,3] = concat(a, d) axis=1\n"
            "output e\n");
}

TEST(ElementwiseTest, BroadcastFunctionsTakeComputedTensorsAndConstants) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 3, 3}).Input("gate", {1, 2, 1, 1}).Floats("rows", {3, 1});
  model.Node("Mul", {"x", "gate"}, {"a"}).Node("Add", {"a", "rows"}, {"b"});
  model.Node("Max", {"b", "x", "a"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{1, 2, 3, 3}, {1, 2, 1, 1}}),
            "input x [1,2,3,3]\ninput gate [1,2,1,1]\na [1,2,3,3] = mul(x, gate)\n"
            "b/rows [3,1] = literal() elements=3\nb [1,2,3,3] = add(a, b/rows)\n"
            "y/1 [1,2,3,3] = max(b, x)\ny [1,2,3,3] = max(y/1, a)\noutput y\n");
}

TEST(ElementwiseTest, FunctionsOfComputedAndOfMixedOperands) {
  OnnxBuilder model;
  model.Input("x", {2, 2}).Input("low", {1}).Integers("powers", {2, 3});
  model.Node("Clip", {"x", "low"}, {"a"}).Node("Mod", {"a", "x"}, {"b"});
  model.Node("Mod", {"a", "x"}, {"c"}, {Int("fmod", 1)}).Node("Pow", {"c", "powers"}, {"d"});
  model.Node("Pow", {"powers", "d"}, {"e"}).Output("b").Output("e");
  EXPECT_EQ(BuiltText(model, {{2, 2}, {1}}),
            "input x [2,2]\ninput low [1]\na [2,2] = max(x, low)\nb [2,2] = floor_mod(a, x)\n"
            "c [2,2] = mod(a, x)\nd/powers [2] = literal() elements=2\n"
            "d [2,2] = power(c, d/powers)\ne/powers [2] = literal() elements=2\n"
            "e/exact [2,2] = power(e/powers, d)\ne [2,2] = truncate(e/exact)\n"
            "output b\noutput e\n");
}

// Rows and columns of the greatest element, counted through the plane.
TEST(ElementwiseTest, IntegersThatAreComputedDivideAsIntegers) {
  OnnxBuilder model;
  model.Input("x", {2, 15}).Integers("five", {5}).Integers("two", {2});
  model.Node("ArgMax", {"x"}, {"at"}, {Int("axis", 1)}).Node("Div", {"at", "five"}, {"row"});
  model.Node("Mod", {"at", "five"}, {"column"})
      .Node("Concat", {"row", "column"}, {"y"}, {Int("axis", 1)});
  model.Node("Pow", {"at", "two"}, {"square"}).Output("y").Output("square");
  EXPECT_EQ(BuiltText(model, {{2, 15}}),
            "input x [2,15]\nat [2,1] = top_k(x) axis=1 indices\n"
            "row/five [1] = literal() elements=1\nrow/exact [2,1] = div(at, row/five)\n"
            "row [2,1] = truncate(row/exact)\ncolumn/five [1] = literal() elements=1\n"
            "column [2,1] = floor_mod(at, column/five)\ny [2,2] = concat(row, column) axis=1\n"
            "square/two [1] = literal() elements=1\nsquare/exact [2,1] = power(at, square/two)\n"
            "square [2,1] = truncate(square/exact)\noutput y\noutput square\n");
}

TEST(ElementwiseTest, IntegersAreKnownAtLoad) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Integers("one", {1}).Node("Equal", {"one", "one"}, {"is"});
  model.Node("Where", {"is", "one", "one"}, {"rows"}).Node("Expand", {"x", "rows"}, {"y"});
  model.Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 3}}), "input x [2,3]\noutput x\n");
}

}  // namespace
}  // namespace tilewire::reader
