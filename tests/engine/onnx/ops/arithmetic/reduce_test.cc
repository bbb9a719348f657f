// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/arithmetic/reduce.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(ReduceTest, Operators) {
  ExpectBuilt({
      {"mean",
       13,
       "ReduceMean",
       {Ints("axes", {2, 3})},
       {2, 4, 5, 6},
       "y [2,4,1,1] = avg_exclude_padding(x) kernel=[5,6]"},
      {"mean without the dims",
       13,
       "ReduceMean",
       {Ints("axes", {-1, -2}), Int("keepdims", 0)},
       {2, 4, 5, 6},
       "y/kept [2,4,1,1] = avg_exclude_padding(x) kernel=[5,6]\ny [2,4] = reshape(y/kept)"},
      {"a sum along one axis",
       11,
       "ReduceSum",
       {Ints("axes", {1}), Int("keepdims", 0)},
       {2, 4, 5},
       "y/kept [2,1,5] = reduce_sum(x)\ny [2,5] = reshape(y/kept)"},
      {"a square root of squares",
       11,
       "ReduceL2",
       {Ints("axes", {-1})},
       {2, 4},
       "y/squares [2,1] = reduce_sum_of_squares(x)\ny [2,1] = activation(y/squares) sqrt(0,0)"},
      {"a norm of any order",
       13,
       "GlobalLpPool",
       {Int("p", 3)},
       {1, 2, 4},
       "y/sizes [1,2,4] = activation(x) abs(0,0)\ny/powers [1,2,4] = activation(y/sizes) pow(1,3)\n"
       "y/sum [1,2,1] = reduce_sum(y/powers)\ny [1,2,1] = activation(y/sum) pow(1,0.333333)"},
  });
}

TEST(ReduceTest, IntegersReduceAlongAxes) {
  OnnxBuilder model;
  model.Input("x", {1, 1}).Integers("all", {1, -2, 3, 4}).Integers("square", {2, 2});
  model.Node("Reshape", {"all", "square"}, {"m"});
  model.Node("ReduceSumSquare", {"m"}, {"s"}, {Ints("axes", {1}), Int("keepdims", 0)});
  model.Node("ReduceMax", {"m"}, {"n"}, {Ints("axes", {0}), Int("keepdims", 0)});
  model.Node("Min", {"s", "n"}, {"shape"}).Node("Expand", {"x", "shape"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{1, 1}}), HasSubstr("y [3,4] = ")) << "of [5,25] and [3,4]";
}

}  // namespace
}  // namespace tilewire::reader
