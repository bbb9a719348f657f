// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/control/identity.cc become, and what these
// compute.
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

}  // namespace
}  // namespace tilewire::reader
