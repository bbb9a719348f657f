// SPDX-License-Identifier: Apache-2.0
//
// Of constants, at load; tests/engine/facade/cut_test.cc has what is computed.
#include "tests/engine/graph/op_case.h"

namespace tilewire::graph {
namespace {

TEST(NonMaxSuppressionTest, OfKnownBoxes) {
  OnnxBuilder model;
  model.Floats("boxes", {1, 3, 4}, {0, 0, 2, 2, 0, 0, 2, 1.5f, 5, 5, 6, 6});
  model.Floats("scores", {1, 2, 3}, {3, 2, 1, 1, 2, 3}).Integers("most", {2});
  model.Node("NonMaxSuppression", {"boxes", "scores", "most"}, {"kept"}).Input("x", {1});
  model.Node("Cast", {"kept"}, {"y"}, {Int("to", onnx::TensorProto::FLOAT)}).Output("y");
  EXPECT_EQ(Computed(model, {{1}}, {{0}})[0], (Elements{0, 0, 0, 0, 0, 2, 0, 1, 2, 0, 1, 1}));
}

TEST(NonMaxSuppressionTest, Refusals) {
  for (const char* boxes : {"m", "z"})
    ExpectInvalid({{"no corners", "NonMaxSuppression", {boxes, "z"}, {}, "boxes of dims [2,"}});
}

}  // namespace
}  // namespace tilewire::graph
