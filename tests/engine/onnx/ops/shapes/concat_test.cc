// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operator of engine/onnx/ops/shapes/concat.cc becomes, what these compute,
// and what it refuses.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(ConcatTest, JoinsComputedTensorsAndConstants) {
  OnnxBuilder model;
  model.Input("x", {2, 1, 2}).Floats("c", {2, 2, 2}, {10, 11, 12, 13, 14, 15, 16, 17});
  model.Node("Concat", {"x", "c", "x"}, {"y"}, {Int("axis", -2)}).Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 1, 2}}),
            "input x [2,1,2]\ny/c [2,2,2] = literal() elements=8\n"
            "y [2,4,2] = concat(x, y/c, x) axis=1\noutput y\n");
  EXPECT_EQ(Computed(model, {{2, 1, 2}}, {{1, 2, 3, 4}})[0],
            Elements({1, 2, 10, 11, 12, 13, 1, 2,  //
                      3, 4, 14, 15, 16, 17, 3, 4}));
}

TEST(ConcatTest, OfOneTensorIsTheTensor) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("Concat", {"x"}, {"y"}, {Int("axis", 0)}).Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 3}}), "input x [2,3]\noutput x\n");
}

// Along the last axis rows alternate, along the first they follow each other.
TEST(ConcatTest, OfConstantsIsAConstant) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Floats("a", {2, 2}, {1, 2, 3, 4}).Floats("b", {2, 1}, {5, 6});
  model.Node("Concat", {"a", "b"}, {"rows"}, {Int("axis", 1)});
  model.Integers("two", {2}).Integers("three", {3});
  model.Node("Concat", {"two", "three"}, {"shape"}, {Int("axis", 0)});
  model.Node("Reshape", {"rows", "shape"}, {"same"}).Node("Add", {"x", "same"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 3}}, {{0, 0, 0, 10, 10, 10}})[0], Elements({1, 2, 5, 13, 14, 16}));
}

TEST(ConcatTest, Refusals) {
  ExpectInvalid({
      {"no axis", "Concat", {"x", "x"}, {}, "attribute 'axis' is missing"},
      {"axis outside", "Concat", {"m", "m"}, {Int("axis", 2)}, "axis 2"},
      {"other dims",
       "Concat",
       {"m", "z"},
       {Int("axis", 0)},
       "input 1 of dims [2,2,3] does not fit"},
      {"constants of two types", "Concat", {"two", "four"}, {Int("axis", 0)}, "different types"},
  });
}

}  // namespace
}  // namespace tilewire::reader
