// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/sampling/resize.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(ResizeTest, ResizeTakesOrMixesNeighbours) {
  OnnxBuilder model;
  model.Input("x", {1, 1, 2, 2}).Floats("roi", {0}).Floats("scales", {4}, {1, 1, 2, 1});
  model.Node(
      "Resize", {"x", "roi", "scales"}, {"a"},
      {String("coordinate_transformation_mode", "asymmetric"), String("nearest_mode", "floor")});
  model.Node("Resize", {"x", "roi", "scales"}, {"b"}, {String("mode", "linear")})
      .Output("a")
      .Output("b");
  EXPECT_EQ(BuiltText(model, {{1, 1, 2, 2}}),
            "input x [1,1,2,2]\na [1,1,4,2] = select(x) 2:0 by 0 x2+1 by 0 x2\n"
            "b [1,1,4,2] = interpolate(x) axis=2 taps=2\noutput a\noutput b\n");
}

TEST(ResizeTest, ResizeCropsAndFillsWhatIsOutside) {
  OnnxBuilder model;
  model.Input("x", {4, 1}).Floats("roi", {4}, {0.5f, 0, 1.5f, 1}).Floats("none", {0});
  model.Integers("sizes", {4, 1}).Integers("half", {2, 1});
  model.Node("Resize", {"x", "roi", "none", "sizes"}, {"a"},
             {String("coordinate_transformation_mode", "tf_crop_and_resize"),
              Float("extrapolation_value", 9)});
  model.Node("Resize", {"x", "roi", "none", "sizes"}, {"b"},
             {String("coordinate_transformation_mode", "tf_crop_and_resize"),
              String("mode", "linear"), Float("extrapolation_value", 9)});
  model.Node("Resize", {"x", "none", "none", "half"}, {"c"},
             {String("coordinate_transformation_mode", "tf_half_pixel_for_nn"),
              String("nearest_mode", "floor")});
  model.Output("a").Output("b").Output("c");
  EXPECT_EQ(BuiltText(model, {{4, 1}}),
            "input x [4,1]\na [4,1] = select(x) 0:1 x2+fill(9) x2\n"
            "b/0 [4,1] = interpolate(x) axis=0 taps=2\nb [4,1] = select(b/0) 0:0 x2+fill(9) x2\n"
            "c [2,1] = select(x) 0:1 by 2 x2\noutput a\noutput b\noutput c\n");
}

TEST(ResizeTest, ASizeThatIsRefusedIsNamedAsASize) {
  OnnxBuilder model;
  model.Input("x", {4, 1}).Integers("sizes", {0, 1});
  model.Node("Resize", {"x", "", "", "sizes"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{4, 1}}), HasSubstr("size 0 of dimension 0, which has 4 elements"));
}

}  // namespace
}  // namespace tilewire::reader
