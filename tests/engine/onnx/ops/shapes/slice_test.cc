// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/shapes/slice.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(SliceTest, Operators) {
  ExpectBuilt({
      {"a slice, counted from the back",
       9,
       "Slice",
       {Ints("starts", {1, -2}), Ints("ends", {3, 9}), Ints("axes", {1, 2})},
       {2, 4, 5},
       "y [2,2,2] = select(x) 1:1 x2 2:3 x2"},
      {"a slice of the first axes",
       9,
       "Slice",
       {Ints("starts", {1, 2}), Ints("ends", {2, 4})},
       {2, 4, 5},
       "y [1,2,5] = select(x) 0:1 x1 1:2 x2"},
  });
}

TEST(SliceTest, SplitGivesEachPartItsName) {
  OnnxBuilder model;
  model.Input("x", {1, 6, 2, 2}).Integers("parts", {4, 2});
  model.Node("Split", {"x", "parts"}, {"a", "b"}, {Int("axis", 1)}).Output("b").Output("a");
  EXPECT_EQ(BuiltText(model, {{1, 6, 2, 2}}),
            "input x [1,6,2,2]\na [1,4,2,2] = select(x) 1:0 x4\nb [1,2,2,2] = select(x) 1:4 x2\n"
            "output b\noutput a\n");
}

TEST(SliceTest, SliceWithStepsGatherExpandTile) {
  OnnxBuilder model;
  model.Input("x", {2, 5}).Integers("from", {-1}).Integers("to", {-9}).Integers("axis", {1});
  model.Integers("step", {-2}).Integers("rows", {1, 1, 0}).Integers("shape", {4, 1, 3});
  model.Integers("times", {1, 1, 2});
  model.Node("Slice", {"x", "from", "to", "axis", "step"}, {"a"})
      .Node("Gather", {"a", "rows"}, {"b"})
      .Node("Expand", {"b", "shape"}, {"c"})
      .Node("Tile", {"c", "times"}, {"y"})
      .Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 5}}),
            "input x [2,5]\na [2,3] = select(x) 1:4 by -2 x3\n"
            "b [3,3] = select(a) 0:1 by 0 x2+0 x1\n"
            "c/raised [1,3,3] = reshape(b)\nc [4,3,3] = select(c/raised) 0:0 by 0 x4\n"
            "y [4,3,6] = select(c) 2:0 x3+0 x3\noutput y\n");
}

}  // namespace
}  // namespace tilewire::reader
