// SPDX-License-Identifier: Apache-2.0
//
// Gradients of every kernel by every stride, dilation and padding, for each kind of row: dense, few
// channels, a channel per group. Paddings reach beyond windows, so that taps and whole windows have
// no pixel.
#include <vector>

#include "engine/primitives/convolution/convolution.h"
#include "tests/engine/primitives/convolution/convolution_cases.h"
#include "tests/engine/primitives/gradient_test.h"

namespace tilewire::testing {
namespace {

struct WindowChannels {
  const char* why;
  int64_t src, dst, groups;
};
constexpr WindowChannels kWindowChannels[] = {
    {"dense", 17, 16, 1}, {"few channels", 3, 17, 1}, {"a channel per group", 19, 19, 19}};

std::vector<ConvolutionCase> WindowShapes() {
  constexpr int64_t kHeight = 7, kWidth = 10;  // as many as every row takes
  std::vector<ConvolutionCase> shapes;
  for (int64_t k : {1, 2, 3, 5}) {
    for (int64_t stride : {1, 2, 3}) {
      for (int64_t dilation : {0, 1, 2}) {
        const int64_t reach = (k - 1) * (dilation + 1);
        for (int64_t left : {int64_t{0}, int64_t{1}, reach, reach + 2}) {
          const int64_t right = left == 1 ? reach : left / 2;
          const bool fits = reach < kHeight + left + right;
          if (!fits || (k == 1 && dilation > 0) || (reach == 1 && left == 1)) continue;
          for (const auto& [why, src, dst, groups] : kWindowChannels) {
            shapes.push_back(Case(why, {2, src, kHeight, kWidth}, dst, {k, k},
                                  {.groups = groups,
                                   .strides = {stride, stride},
                                   .dilations = {dilation, dilation},
                                   .left = {left, left},
                                   .right = {right, right}}));
          }
        }
      }
    }
  }
  return shapes;
}

class ConvolutionWindowGradientTest : public GradientTest<ConvolutionDesc> {
 protected:
  ConvolutionWindowGradientTest() : GradientTest(CreateConvolution) {}
};

TEST_P(ConvolutionWindowGradientTest, IsExactOnIntegers) {
  if (GetParam().traits.runs_another) GTEST_SKIP() << "runs the others";
  for (const ConvolutionCase& shape : WindowShapes()) {
    const ConvolutionDesc desc = DescOf(shape);
    SCOPED_TRACE(::testing::Message()
                 << "kernel " << shape.kernel[0] << " stride " << desc.strides[0] << " dilation "
                 << desc.dilations[0] << " padding " << desc.padding_left[0] << " and "
                 << desc.padding_right[0]);
    Check({shape.why, desc,
           ConvolutionProducts({desc.src.dims(), desc.dst.dims(), shape.kernel, shape.groups,
                                desc.strides, desc.dilations, desc.padding_left})},
          /*integers=*/true);
  }
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, ConvolutionWindowGradientTest,
                         ::testing::ValuesIn(BackwardRows(ConvolutionImplementations())),
                         RowName<Implementation<ConvolutionDesc>>);

}  // namespace
}  // namespace tilewire::testing
