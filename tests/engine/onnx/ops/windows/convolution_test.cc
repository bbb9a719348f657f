// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/windows/convolution.cc become, and what they
// refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

struct ConvCase {
  const char* why;
  std::vector<onnx::AttributeProto> attributes;
  std::vector<int64_t> src, weights;
  const char* expected;
};

TEST(ConvolutionTest, Convolution) {
  const ConvCase cases[] = {
      {"no attribute",
       {},
       {1, 3, 8, 8},
       {4, 3, 3, 3},
       "y [1,4,6,6] = convolution(x) w[4,3,3,3] bias"},
      {"same size",
       {Ints("pads", {1, 1, 1, 1})},
       {1, 3, 8, 8},
       {4, 3, 3, 3},
       "y [1,4,8,8] = convolution(x) w[4,3,3,3] bias pads=[1,1],[1,1]"},
      {"dilation counts from 0",
       {Ints("dilations", {2, 2})},
       {1, 3, 8, 8},
       {4, 3, 3, 3},
       "y [1,4,4,4] = convolution(x) w[4,3,3,3] bias dilations=[1,1]"},
      {"depthwise, stride 2",
       {Int("group", 6), Ints("strides", {2, 2})},
       {2, 6, 9, 9},
       {6, 1, 3, 3},
       "y [2,6,4,4] = convolution(x) w[6,1,3,3] bias groups=6 strides=[2,2]"},
      {"same, odd",
       {String("auto_pad", "SAME_UPPER"), Ints("strides", {2, 2})},
       {1, 3, 8, 8},
       {4, 3, 3, 3},
       "y [1,4,4,4] = convolution(x) w[4,3,3,3] bias strides=[2,2] pads=[0,0],[1,1]"},
      {"one spatial dimension",
       {},
       {1, 3, 8},
       {4, 3, 3},
       "y [1,4,6] = convolution(x) w[4,3,3] bias"},
      {"three spatial dimensions",
       {},
       {1, 3, 8, 8, 8},
       {4, 3, 1, 2, 3},
       "y [1,4,8,7,6] = convolution(x) w[4,3,1,2,3] bias"},
  };
  for (const ConvCase& c : cases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model;
    model.Input("x", c.src).Floats("w", c.weights).Floats("b", {c.weights[0]});
    model.Node("Conv", {"x", "w", "b"}, {"y"}, c.attributes).Output("y");
    EXPECT_THAT(BuiltText(model, {Dims(c.src.begin(), c.src.end())}),
                HasSubstr(std::string(c.expected) + "\n"));
  }
}

TEST(ConvolutionTest, ConvolutionsWithComputedWeights) {
  OnnxBuilder model;
  model.Input("x", {1, 4, 5, 5}).Input("w", {4, 2, 3, 3}).Input("b", {4}).Floats("k", {4, 2, 3, 3});
  model.Node("Conv", {"x", "w", "b"}, {"y"}, {Int("group", 2), Ints("strides", {2, 2})});
  model.Node("Conv", {"x", "k", "b"}, {"z"}, {Int("group", 2)});
  model.Node("ConvTranspose", {"x", "w"}, {"t"}, {Int("group", 2)});
  model.Output("y").Output("z").Output("t");
  const std::string text = BuiltText(model, {{1, 4, 5, 5}, {4, 2, 3, 3}, {4}});
  EXPECT_THAT(text, HasSubstr("y [1,4,2,2] = computed_convolution(x, w, b) groups=2 "
                              "strides=[2,2]\n"));
  EXPECT_THAT(text,
              HasSubstr("z/unbiased [1,4,3,3] = convolution(x) k[4,2,3,3] groups=2\n"
                        "z/bias [4,1,1] = reshape(b)\nz [1,4,3,3] = add(z/unbiased, z/bias)"));
  EXPECT_THAT(text, HasSubstr("t/groups [2,2,2,3,3] = reshape(w)\n"
                              "t/swapped [2,2,2,3,3] = transpose(t/groups) order=[0,2,1,3,4]\n"
                              "t/outputs [4,2,3,3] = reshape(t/swapped)\n"
                              "t/turned [4,2,3,3] = select(t/outputs) 2:2 by -1 x3 3:2 by -1 x3\n"
                              "t [1,4,7,7] = computed_convolution(x, t/turned) groups=2 "
                              "pads=[2,2],[2,2]"));
}

TEST(ConvolutionTest, Refusals) {
  ExpectInvalid({
      {"groups that do not divide", "Conv", {"x", "w"}, {Int("group", 3)}, "do not fit"},
      {"no groups", "Conv", {"x", "w"}, {Int("group", 0)}, "do not fit"},
      {"negative pads", "Conv", {"x", "w"}, {Ints("pads", {-1, 0, 0, 0})}, "pads -1"},
      {"stride 0", "Conv", {"x", "w"}, {Ints("strides", {0, 1})}, "strides 0"},
      {"huge dilation", "Conv", {"x", "w"}, {Ints("dilations", {1 << 30, 1})}, "does not fit"},
      {"huge pads",
       "Conv",
       {"x", "w"},
       {Ints("pads", {2147483647, 2147483647, 2147483647, 2147483647})},
       "too large"},
  });
}

}  // namespace
}  // namespace tilewire::reader
