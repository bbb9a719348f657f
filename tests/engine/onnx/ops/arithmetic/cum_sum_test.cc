// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(CumSumTest, AsManyStepsAsTheSizeHasBits) {
  OnnxBuilder model(14);
  model.Input("x", {3}).Integers("axis", {-1}).Node("CumSum", {"x", "axis"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{3}}),
            "input x [3]\n"
            "y/shifted1 [3] = select(x) 0:fill(0) x1+0 x2\n"
            "y/sums2 [3] = sum(x, y/shifted1)\n"
            "y/shifted2 [3] = select(y/sums2) 0:fill(0) x2+0 x1\n"
            "y [3] = sum(y/sums2, y/shifted2)\n"
            "output y\n");
}

TEST(CumSumTest, ExclusiveAndReversed) {
  OnnxBuilder model(14);
  model.Input("x", {2, 3}).Integers("axis", {1});
  model.Node("CumSum", {"x", "axis"}, {"y"}, {Int("exclusive", 1), Int("reverse", 1)});
  model.Output("y");
  EXPECT_EQ(Computed(model, {{2, 3}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{5, 3, 0, 11, 6, 0}}));
}

TEST(CumSumTest, Refusals) {
  ExpectInvalid({{"no such axis", "CumSum", {"m", "shape"}, {}, "axis 7 is outside rank 2"}});
}

}  // namespace
}  // namespace tilewire::reader
