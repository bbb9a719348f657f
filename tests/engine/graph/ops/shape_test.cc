// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/graph/ops/shape.cc become.
#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

// What exporters write for x.view(x.size(0), -1) and for channel_shuffle.
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

}  // namespace
}  // namespace tilewire::graph
