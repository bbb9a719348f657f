// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/graph/ops/qlinear.cc become, and what they refuse.
#include <gmock/gmock.h>

#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

using ::testing::HasSubstr;
using testing::OnnxBuilder;

TEST(QLinearTest, QuantisedConvolutionWithComputedWeightsAndScales) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 4, 4}).Input("w", {3, 2, 1, 1}).Integers("bias", {1, 2, 3});
  model.Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Node("DynamicQuantizeLinear", {"w"}, {"wq", "ws", "wz"});
  model.Node("QLinearConv", {"q", "s", "z", "wq", "ws", "wz", "s", "z", "bias"}, {"y"});
  model.Node("ConvInteger", {"q", "wq", "z", "wz"}, {"i"}).Output("y").Output("i");
  const std::string text = BuiltText(model, {{1, 2, 4, 4}, {3, 2, 1, 1}});
  EXPECT_THAT(text,
              HasSubstr("y/real [1,3,4,4] = computed_convolution(y/src, y/weights, y/bias4)"));
  EXPECT_THAT(text, HasSubstr("y u8 [1,3,4,4] = quantize("));
  EXPECT_THAT(text, HasSubstr("i [1,3,4,4] = computed_convolution(i/src, i/weights)"));
}

}  // namespace
}  // namespace tilewire::graph
