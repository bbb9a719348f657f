// SPDX-License-Identifier: Apache-2.0
//
// DeformConv (engine/onnx/ops/windows/deform_conv.cc) against what torchvision's deform_conv2d()
// gives.
#include <functional>
#include <vector>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

Elements Numbers(const Dims& dims, const std::function<int64_t(int64_t)>& whole, double divisor) {
  Elements numbers;
  for (int64_t i = 0; i < *ElementCount(dims); ++i)
    numbers.push_back(static_cast<double>(whole(i)) / divisor);
  return numbers;
}

Elements Images(const Dims& dims) {
  return Numbers(
      dims, [](int64_t i) { return i * 17 % 13 - 6; }, 3);
}
// Some lead outside the image.
Elements Offsets(const Dims& dims) {
  return Numbers(
      dims, [](int64_t i) { return i * 37 % 11 - 5; }, 4);
}
std::vector<float> WeightNumbers(const Dims& dims) {
  const Elements numbers = Numbers(
      dims, [](int64_t i) { return i * 29 % 7 - 3; }, 4);
  return {numbers.begin(), numbers.end()};
}

TEST(DeformConvTest, AsTorchvision) {
  for (const int64_t opset : {19, 22}) {
    OnnxBuilder model(opset);
    model.Input("x", {1, 2, 4, 5}).Input("o", {1, 18, 4, 5});
    model.Floats("w", {1, 2, 3, 3}, WeightNumbers({1, 2, 3, 3}));
    model.Node("DeformConv", {"x", "w", "o"}, {"y"}, {Ints("pads", {1, 1, 1, 1})}).Output("y");
    ExpectNear(Computed(model, {{1, 2, 4, 5}, {1, 18, 4, 5}},
                        {Images({1, 2, 4, 5}), Offsets({1, 18, 4, 5})})[0],
               {-1.0052, 2.0729,   0.18229,  -1.625,   -0.026042, -1.0052, -0.03125,
                0.24479, -0.89583, -0.57292, 0.19792,  1.4323,    -2.3646, -0.22396,
                2.4375,  0.8125,   -1.6823,  -0.98958, 2.4531,    -0.89583},
               1e-4);
  }
}

TEST(DeformConvTest, GroupsMaskAndBiasAsTorchvision) {
  const Dims x = {2, 4, 4, 5}, offsets = {2, 24, 4, 2}, mask = {2, 12, 4, 2};
  OnnxBuilder model(19);
  model.Input("x", {2, 4, 4, 5}).Input("o", {2, 24, 4, 2}).Input("m", {2, 12, 4, 2});
  model.Floats("w", {2, 2, 2, 3}, WeightNumbers({2, 2, 2, 3})).Floats("b", {2}, {0.5f, 1.5f});
  model.Node("DeformConv", {"x", "w", "o", "b", "m"}, {"y"},
             {Ints("pads", {1, 0, 1, 0}), Ints("strides", {1, 2}), Ints("dilations", {2, 1}),
              Int("group", 2), Int("offset_group", 2)});
  model.Output("y");
  const Elements shares = Numbers(
      mask, [](int64_t i) { return i * 5 % 9; }, 8);
  ExpectNear(Computed(model, {x, offsets, mask}, {Images(x), Offsets(offsets), shares})[0],
             {-0.55469, 1.3854,  0.60807, -0.2487, 0.82552, 0.32292,  0.79492, 1.1068,
              1.5104,   1.7812,  1.2786,  1.4401,  1.8359,  1.7747,   1.1602,  1.2682,
              0.11979,  0.37891, 0.35156, 1.3802,  0.41536, 1.0469,   0.73958, -0.53125,
              1.2513,   2.875,   2.1966,  1.2435,  1.5299,  -0.63932, 1.2305,  1.4453},
             1e-4);
}

TEST(DeformConvTest, Refusals) {
  ExpectInvalid(
      {{"offsets of another size", "DeformConv", {"x", "w", "x"}, {}, "expected [1,18,6,6]", 19},
       {"groups that do not fit",
        "DeformConv",
        {"x", "w", "x"},
        {Int("offset_group", 3)},
        "offset_group 3 do not fit",
        19}});
}

}  // namespace
}  // namespace tilewire::reader
