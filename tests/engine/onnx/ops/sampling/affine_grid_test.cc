// SPDX-License-Identifier: Apache-2.0
//
// AffineGrid (engine/onnx/ops/sampling/affine_grid.cc); tests/conformance has it against numpy.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

OnnxBuilder GridModel(const std::vector<int64_t>& theta, const std::vector<int64_t>& size,
                      int64_t align_corners) {
  OnnxBuilder model(20);
  model.Input("x", theta).Integers("size", size);
  return model.Node("AffineGrid", {"x", "size"}, {"y"}, {Int("align_corners", align_corners)})
      .Output("y");
}

// Halves x, and moves y by 1.
TEST(AffineGridTest, CentresOrCorners) {
  const Elements theta = {0.5, 0, 0, 0, 1, 1};
  EXPECT_EQ(Computed(GridModel({1, 2, 3}, {1, 5, 1, 2}, 0), {{1, 2, 3}}, {theta}),
            (std::vector<Elements>{{-0.25, 1, 0.25, 1}}));
  EXPECT_EQ(Computed(GridModel({1, 2, 3}, {1, 5, 1, 2}, 1), {{1, 2, 3}}, {theta}),
            (std::vector<Elements>{{-0.5, 1, 0.5, 1}}));
}

TEST(AffineGridTest, Refusals) {
  EXPECT_THAT(BuiltText(GridModel({2, 2, 3}, {1, 1, 2, 2}, 0), {{2, 2, 3}}),
              HasSubstr("theta [2,2,3] does not fit size [1,1,2,2]"));
  EXPECT_THAT(BuiltText(GridModel({1, 2, 3}, {1, 1, 0, 2}, 0), {{1, 2, 3}}),
              HasSubstr("size [1,1,0,2]"));
  EXPECT_THAT(BuiltText(GridModel({1, 2, 3}, {1, 1, 1 << 20, 1 << 20}, 0), {{1, 2, 3}}),
              HasSubstr("RESOURCE_EXHAUSTED"));
}

}  // namespace
}  // namespace tilewire::reader
