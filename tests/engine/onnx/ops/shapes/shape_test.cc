// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/shapes/shape.cc become.
#include <cmath>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// The shape arithmetic that exporters write for x.view(x.size(0), -1) and for channel_shuffle.
TEST(ShapeTest, ShapeArithmeticFoldsForEveryBatch) {
  OnnxBuilder model;
  model.Input("x", {-1, 6, 4, 4})
      .Integers("zero", {0})
      .Integers("rest", {-1})
      .Integers("two", {2})
      .Integers("one", {1});
  model.Node("Shape", {"x"}, {"shape"}).Node("Gather", {"shape", "zero"}, {"batch"});
  model.Node("Slice", {"shape", "one", "two"}, {"channels"})
      .Node("Div", {"channels", "two"}, {"half"});
  model.Node("Mul", {"half", "two"}, {"all"})
      .Node("Concat", {"batch", "rest", "half"}, {"dims"}, {Int("axis", 0)});
  model.Node("Reshape", {"x", "dims"}, {"y"})
      .Node("Cast", {"y"}, {"z"}, {Int("to", 1)})
      .Output("z");
  EXPECT_EQ(BuiltText(model, {{5, 6, 4, 4}}),
            "input x [5,6,4,4]\ny [5,32,3] = reshape(x)\noutput y\n");
}

TEST(ShapeTest, ARangeThatLeadsNowhereIsInvalid) {
  OnnxBuilder model;
  model.Input("x", {2}).Integers("zero", {0}).Integers("nine", {9});
  model.Node("Range", {"zero", "nine", "zero"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{2}}), HasSubstr("INVALID_ARGUMENT"));
  EXPECT_THAT(BuiltText(model, {{2}}), HasSubstr("a step of 0"));
  OnnxBuilder reals;
  reals.Input("x", {2}).Floats("from", {}, {0}).Floats("to", {}, {9}).Floats("by", {}, {NAN});
  reals.Node("Range", {"from", "to", "by"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(reals, {{2}}), HasSubstr("a step of nan"));
}

}  // namespace
}  // namespace tilewire::reader
