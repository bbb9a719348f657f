// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/windows/deconvolution.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// A ConvTranspose of x [1, 2, 3, 3] with known weights.
std::string TransposedText(const std::vector<int64_t>& weights,
                           const std::vector<onnx::AttributeProto>& attributes) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 3, 3}).Floats("w", weights);
  model.Node("ConvTranspose", {"x", "w"}, {"y"}, attributes).Output("y");
  return BuiltText(model, {{1, 2, 3, 3}});
}

TEST(DeconvolutionTest, KnownWeightsMakeADeconvolution) {
  EXPECT_EQ(TransposedText({2, 4, 3, 3}, {Ints("strides", {2, 2}), Ints("pads", {1, 1, 1, 1}),
                                          Ints("output_padding", {1, 1})}),
            "input x [1,2,3,3]\ny [1,4,6,6] = deconvolution(x) w/outputs_first[4,2,3,3] "
            "strides=[2,2] pads=[1,1],[0,0]\noutput y\n");
}

TEST(DeconvolutionTest, InputsThatFillAVectorMakeADeconvolutionOfFewOutputs) {
  OnnxBuilder model;
  model.Input("x", {1, 16, 3, 3}).Floats("w", {16, 1, 2, 2});
  model.Node("ConvTranspose", {"x", "w"}, {"y"}, {Ints("strides", {2, 2})}).Output("y");
  EXPECT_THAT(BuiltText(model, {{1, 16, 3, 3}}), HasSubstr("y [1,1,6,6] = deconvolution(x)"));
}

TEST(DeconvolutionTest, FewChannelsOfWindowsThatDoNotOverlapAreConvolvedPixelByPixel) {
  const std::string text = TransposedText({2, 1, 2, 2}, {Ints("strides", {2, 2})});
  EXPECT_THAT(text, HasSubstr("y/pixels [1,4,3,3] = convolution(x) w/pixels[4,2,1,1]"));
  EXPECT_THAT(text, HasSubstr("y/places [1,1,3,2,3,2] = transpose(y/windows) "
                              "order=[0,3,4,1,5,2]"));
  EXPECT_THAT(text, HasSubstr("y [1,1,6,6] = reshape(y/places)"));
}

TEST(DeconvolutionTest, MoreOutputPaddingThanPaddingIsAConvolutionOfASpreadSource) {
  const std::string text = TransposedText(
      {2, 4, 3, 3},
      {Ints("strides", {2, 2}), Ints("pads", {1, 1, 0, 0}), Ints("output_padding", {1, 1})});
  EXPECT_THAT(text, HasSubstr("y/spread [1,2,6,6] = select(x)"));
  EXPECT_THAT(text, HasSubstr("y [1,4,7,7] = convolution(y/spread) w/turned[4,2,3,3] "
                              "pads=[1,1],[2,2]"));
}

}  // namespace
}  // namespace tilewire::reader
