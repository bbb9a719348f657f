// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/shapes/reshape.cc become, and what they
// refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(ReshapeTest, Operators) {
  ExpectBuilt({
      {"flatten", 13, "Flatten", {}, {2, 4, 5}, "y [2,20] = reshape(x)"},
      {"flatten at 0", 13, "Flatten", {Int("axis", 0)}, {2, 4, 5}, "y [1,40] = reshape(x)"},
      {"squeeze all", 11, "Squeeze", {}, {2, 4, 1, 1}, "y [2,4] = reshape(x)"},
      {"squeeze one", 11, "Squeeze", {Ints("axes", {-1})}, {2, 4, 1, 1}, "y [2,4,1] = reshape(x)"},
      {"unsqueeze", 11, "Unsqueeze", {Ints("axes", {0, 3})}, {2, 4}, "y [1,2,4,1] = reshape(x)"},
  });
}

TEST(ReshapeTest, TheHighestRankIsNamed) {
  OnnxBuilder model;
  model.Input("x", {2}).Integers("dims", {2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  model.Node("Reshape", {"x", "dims"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{2}}), HasSubstr("a shape of rank 13; the highest is 12"));
}

TEST(ReshapeTest, Refusals) {
  ExpectInvalid({
      {"reshape of another count", "Reshape", {"x", "shape"}, {}, "cannot view [1,4,8,8] as [7]"},
  });
}

}  // namespace
}  // namespace tilewire::reader
