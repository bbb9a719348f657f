// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/shapes/pad.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(PadTest, Operators) {
  ExpectBuilt({
      {"zeros around",
       10,
       "Pad",
       {Ints("pads", {0, 0, 1, 0, 0, 2})},
       {2, 4, 5},
       "y [2,4,8] = select(x) 2:fill(0) x1+0 x5+fill(0) x2"},
      {"mirrored edges",
       10,
       "Pad",
       {String("mode", "reflect"), Ints("pads", {0, 2, 0, 1})},
       {2, 4},
       "y [2,7] = select(x) 1:2 by -1 x2+0 x4+2 by -1 x1"},
      {"repeated edges",
       10,
       "Pad",
       {String("mode", "edge"), Ints("pads", {0, 2, 0, 1})},
       {2, 4},
       "y [2,7] = select(x) 1:0 by 0 x2+0 x4+3 by 0 x1"},
      {"negative pads cut",
       10,
       "Pad",
       {Ints("pads", {0, -1, 0, -1})},
       {2, 4},
       "y [2,2] = select(x) 1:1 x2"},
  });
}

TEST(PadTest, CenterCropPadKeepsTheMiddle) {
  OnnxBuilder model(18);
  model.Input("x", {2, 5}).Integers("sizes", {5, 2}).Integers("one", {8});
  model.Node("CenterCropPad", {"x", "sizes"}, {"y"}).Output("y");
  model.Node("CenterCropPad", {"x", "one"}, {"z"}, {Ints("axes", {-1})}).Output("z");
  EXPECT_EQ(Computed(model, {{2, 5}}, {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}}),
            (std::vector<Elements>{{0, 0, 2, 3, 7, 8, 0, 0, 0, 0},
                                   {0, 1, 2, 3, 4, 5, 0, 0, 0, 6, 7, 8, 9, 10, 0, 0}}));
}

TEST(PadTest, PadTakesAComputedValue) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Input("v", {1}).Integers("pads", {0, 1, 0, -1});
  model.Node("Pad", {"x", "pads", "v"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 3}, {1}}),
            "input x [2,3]\ninput v [1]\ny/zeros [2,3] = select(x) 1:fill(0) x1+0 x2\n"
            "y/one [1,1] = literal() elements=1\n"
            "y/inside [2,3] = select(y/one) 0:0 by 0 x2 1:fill(0) x1+0 by 0 x2\n"
            "y [2,3] = where(y/inside, y/zeros, v)\noutput y\n");
}

}  // namespace
}  // namespace tilewire::reader
