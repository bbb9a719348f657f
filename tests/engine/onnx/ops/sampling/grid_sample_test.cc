// SPDX-License-Identifier: Apache-2.0
//
// GridSample (engine/onnx/ops/sampling/grid_sample.cc) against what PyTorch's grid_sample() gives.
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

const Elements kImage = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};  // [1, 2, 2, 3]
const Elements kGrid = {-1.2, -0.7, 0.1, 0.3, 0.9, 1.6};          // [1, 1, 3, 2]

struct SampleCase {
  std::string mode, padding;
  int aligns_corners;
  Elements expected;  // [1, 2, 1, 3]
};

TEST(GridSampleTest, AsPyTorch) {
  const std::vector<SampleCase> cases = {
      {"bilinear", "zeros", 0, {0.16, 4.55, 0, 1.12, 10.55, 0}},
      {"bilinear", "zeros", 1, {1.16, 4.05, 4.13, 5.96, 10.05, 8.33}},
      {"bilinear", "border", 0, {1, 4.55, 6, 7, 10.55, 12}},
      {"bilinear", "border", 1, {1.45, 4.05, 5.9, 7.45, 10.05, 11.9}},
      {"bilinear", "reflection", 0, {1, 4.55, 5.7, 7, 10.55, 11.7}},
      {"bilinear", "reflection", 1, {1.65, 4.05, 5, 7.65, 10.05, 11}},
      {"nearest", "zeros", 0, {0, 5, 0, 0, 11, 0}},
      {"nearest", "zeros", 1, {1, 5, 6, 7, 11, 12}},
      {"nearest", "border", 0, {1, 5, 6, 7, 11, 12}},
      {"nearest", "reflection", 0, {1, 5, 6, 7, 11, 12}},
      {"bicubic", "zeros", 0, {0.07456, 5.32183, -0.249882, 0.944704, 12.1382, -0.493026}},
      {"bicubic", "zeros", 1, {1.14872, 4.88172, 4.88539, 6.56549, 11.9529, 9.4742}},
      {"bicubic", "reflection", 0, {0.52, 4.68097, 5.92463, 6.52, 10.681, 11.9246}},
      {"bicubic", "reflection", 1, {1.23825, 4.30425, 5.3375, 7.23825, 10.3043, 11.3375}},
  };
  for (const SampleCase& c : cases) {
    for (const int64_t opset : {16, 20}) {
      SCOPED_TRACE(c.mode + " " + c.padding + " " + std::to_string(opset));
      OnnxBuilder model(opset);
      model.Input("x", {1, 2, 2, 3}).Input("g", {1, 1, 3, 2});
      const std::string mode = opset == 16 || c.mode == "nearest" ? c.mode : c.mode.substr(2);
      model.Node("GridSample", {"x", "g"}, {"y"},
                 {String("mode", mode), String("padding_mode", c.padding),
                  Int("align_corners", c.aligns_corners)});
      model.Output("y");
      ExpectNear(Computed(model, {{1, 2, 2, 3}, {1, 1, 3, 2}}, {kImage, kGrid})[0], c.expected,
                 1e-4);
    }
  }
}

// As projections give where they divide by zero.
TEST(GridSampleTest, PlacesThatAreNoNumbersReadWhatPyTorchReads) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<std::string, Elements>> cases = {{"zeros", {0, 0, 0, 0, 0, 0}},
                                                               {"border", {3, 4, 1, 9, 10, 7}}};
  for (const char* mode : {"linear", "nearest"}) {
    for (const auto& [padding, expected] : cases) {
      SCOPED_TRACE(std::string(mode) + " " + padding);
      OnnxBuilder model(20);
      model.Input("x", {1, 2, 2, 3}).Input("g", {1, 1, 3, 2});
      model.Node("GridSample", {"x", "g"}, {"y"},
                 {String("mode", mode), String("padding_mode", padding)});
      model.Output("y");
      const Elements grid = {kInf, -1, -kInf, 1, std::nan(""), -0.9};
      EXPECT_EQ(Computed(model, {{1, 2, 2, 3}, {1, 1, 3, 2}}, {kImage, grid})[0], expected);
    }
  }
}

TEST(GridSampleTest, ImagesAreApart) {
  OnnxBuilder model(16);
  model.Input("x", {2, 1, 1, 2}).Input("g", {2, 1, 1, 2});
  model.Node("GridSample", {"x", "g"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 1, 1, 2}, {2, 1, 1, 2}}, {{1, 2, 5, 7}, {0, 0, 0.5, 0}}),
            (std::vector<Elements>{{1.5, 7}}));
}

TEST(GridSampleTest, Refusals) {
  ExpectInvalid(
      {{"mode of later", "GridSample", {"x", "w"}, {String("mode", "linear")}, "linear", 16},
       {"another batch", "GridSample", {"x", "w"}, {}, "a grid", 16}});
  ExpectUnimplemented({{"cubic border",
                        "GridSample",
                        {"x", "x"},
                        {String("mode", "cubic"), String("padding_mode", "border")},
                        "mode cubic with padding_mode border",
                        20}});
}

}  // namespace
}  // namespace tilewire::reader
