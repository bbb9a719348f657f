// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/selection/top_k.cc become, and what they
// refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(TopKTest, SeveralOperands) {
  ExpectBuiltFrom({
      {"best of a row",
       "ArgMax",
       {"x"},
       {Int("axis", -1)},
       {2, 3, 4},
       "y [2,3,1] = top_k(x) axis=2 indices\n"},
      {"last of the least",
       "ArgMin",
       {"x"},
       {Int("axis", 1), Int("keepdims", 0), Int("select_last_index", 1)},
       {2, 3, 4},
       "y/kept [2,1,4] = top_k(x) axis=1 smallest indices last\ny [2,4] = reshape(y/kept)\n"},
      {"the largest",
       "TopK",
       {"x", "two"},
       {Int("axis", 1)},
       {2, 3, 4},
       "y [2,2,4] = top_k(x) axis=1\n"},
  });
}

TEST(TopKTest, TopKGivesIndicesAsItsSecondOutput) {
  OnnxBuilder model;
  model.Input("x", {2, 9}).Integers("k", {3}).Node("TopK", {"x", "k"}, {"v", "i"});
  model.Output("i").Output("v");
  EXPECT_EQ(BuiltText(model, {{2, 9}}),
            "input x [2,9]\nv [2,3] = top_k(x) axis=1\ni [2,3] = top_k(x) axis=1 indices\n"
            "output i\noutput v\n");
}

TEST(TopKTest, Refusals) {
  ExpectInvalid({
      {"more than there are", "TopK", {"m", "four"}, {}, "k 4 of 3"},
      {"axis outside", "ArgMax", {"m"}, {Int("axis", 2)}, "axis 2"},
  });
}

}  // namespace
}  // namespace tilewire::reader
