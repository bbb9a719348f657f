// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/shapes/repeat.cc become, what these compute,
// and what they refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(RepeatTest, ExpandBroadcastsBothWays) {
  OnnxBuilder model;
  model.Input("x", {3, 1}).Integers("shape", {2, 1, 2});
  model.Node("Expand", {"x", "shape"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{3, 1}}),
            "input x [3,1]\ny/raised [1,3,1] = reshape(x)\n"
            "y [2,3,2] = select(y/raised) 0:0 by 0 x2 2:0 by 0 x2\noutput y\n");
  // numpy.broadcast_to(x, (2, 3, 2)): 1 in the shape leaves a dimension as it is.
  EXPECT_EQ(Computed(model, {{3, 1}}, {{5, 6, 7}})[0],
            Elements({5, 5, 6, 6, 7, 7, 5, 5, 6, 6, 7, 7}));
}

TEST(RepeatTest, ExpandToItsOwnShapeIsTheSource) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Integers("shape", {1, 3}).Node("Expand", {"x", "shape"}, {"y"});
  EXPECT_EQ(BuiltText(model.Output("y"), {{2, 3}}), "input x [2,3]\noutput x\n");
}

TEST(RepeatTest, TileRepeatsEveryDimension) {
  OnnxBuilder model;
  model.Input("x", {2, 1, 2}).Integers("times", {1, 3, 2});
  model.Node("Tile", {"x", "times"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 1, 2}}),
            "input x [2,1,2]\ny [2,3,4] = select(x) 1:0 by 0 x3 2:0 x2+0 x2\noutput y\n");
  // numpy.tile(x, (1, 3, 2)).
  EXPECT_EQ(Computed(model, {{2, 1, 2}}, {{1, 2, 3, 4}})[0],
            Elements({1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2,  //
                      3, 4, 3, 4, 3, 4, 3, 4, 3, 4, 3, 4}));
}

TEST(RepeatTest, ConstantsRepeatAtLoad) {
  OnnxBuilder model;
  model.Input("x", {2, 2}).Integers("two", {2}).Floats("c", {1}, {3});
  model.Node("Tile", {"c", "two"}, {"pair"}).Node("Expand", {"pair", "two"}, {"same"});
  model.Node("Add", {"x", "same"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 2}}, {{1, 2, 3, 4}})[0], Elements({4, 5, 6, 7}));
}

TEST(RepeatTest, Refusals) {
  ExpectInvalid({
      {"neither 1 nor equal", "Expand", {"m", "shape"}, {}, "[2,3] does not expand to [7]"},
      {"a count for one of two dimensions", "Tile", {"m", "four"}, {}, "1 repeats for rank 2"},
  });
}

}  // namespace
}  // namespace tilewire::reader
