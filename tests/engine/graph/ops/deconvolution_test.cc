// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/graph/ops/deconvolution.cc become.
#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

TEST(DeconvolutionTest, TransposedConvolutionIsOneOfASpreadSource) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 3, 3}).Floats("w", {2, 4, 3, 3});
  model
      .Node("ConvTranspose", {"x", "w"}, {"y"},
            {Ints("strides", {2, 2}), Ints("pads", {1, 1, 1, 1}), Ints("output_padding", {1, 1})})
      .Output("y");
  const std::string text = BuiltText(model, {{1, 2, 3, 3}});
  EXPECT_THAT(text, HasSubstr("y/spread [1,2,6,6] = select(x)"));
  EXPECT_THAT(text, HasSubstr("y [1,4,6,6] = convolution(y/spread) w/turned[4,2,3,3] "
                              "pads=[1,1],[1,1]"));
}

}  // namespace
}  // namespace tilewire::graph
