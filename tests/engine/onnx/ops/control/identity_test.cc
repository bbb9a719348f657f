// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/control/identity.cc become, what these
// compute, and what they refuse.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(IdentityTest, AddsNoOperation) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("Identity", {"x"}, {"a"}).Node("Dropout", {"a"}, {"b"});
  model.Node("Relu", {"b"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(model, {{2, 3}}),
            "input x [2,3]\ny [2,3] = activation(x) relu(0,0)\noutput y\n");
}

TEST(IdentityTest, OfAConstantIsTheConstant) {
  OnnxBuilder model;
  model.Input("x", {2}).Floats("c", {2}, {10, 20}).Node("Identity", {"c"}, {"same"});
  model.Node("Add", {"x", "same"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2}}, {{1, 2}})[0], Elements({11, 22}));
}

TEST(IdentityTest, TheMaskOfDropoutKeepsEverything) {
  OnnxBuilder model;
  model.Input("x", {2, 1, 3}).Node("Dropout", {"x"}, {"kept", "mask"});
  model.Output("kept").Output("mask");
  EXPECT_EQ(BuiltText(model, {{2, 1, 3}}),
            "input x [2,1,3]\nkept/kept [1,1,1] = literal() elements=1\n"
            "mask [2,1,3] = select(kept/kept) 0:0 by 0 x2 2:0 by 0 x3\noutput x\noutput mask\n");
  EXPECT_EQ(Computed(model, {{2, 1, 3}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{1, 2, 3, 4, 5, 6}, {1, 1, 1, 1, 1, 1}}));
}

// Elements are dropped in training_mode only, and there not with a ratio of 0.
TEST(IdentityTest, DropoutThatDropsIsRefused) {
  for (const float ratio : {0.0f, 0.5f}) {
    for (const bool training : {false, true}) {
      OnnxBuilder model;
      model.Input("x", {2}).Floats("ratio", {}, {ratio});
      model.Tensor("training", {}, onnx::TensorProto::BOOL)->add_int32_data(training);
      model.Node("Dropout", {"x", "ratio", "training"}, {"y"}).Output("y");
      const std::string text = BuiltText(model, {{2}});
      if (training && ratio != 0) {
        EXPECT_THAT(text, HasSubstr("UNIMPLEMENTED: node 'node_y'"));
        EXPECT_THAT(text, HasSubstr("training_mode with a ratio other than 0"));
      } else {
        EXPECT_EQ(text, "input x [2]\noutput x\n") << ratio << training;
      }
    }
  }
}

}  // namespace
}  // namespace tilewire::reader
