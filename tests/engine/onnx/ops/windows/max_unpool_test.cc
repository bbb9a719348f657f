// SPDX-License-Identifier: Apache-2.0
//
// MaxUnpool (engine/onnx/ops/windows/max_unpool.cc); tests/conformance has it against numpy.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

OnnxBuilder UnpoolModel(const std::vector<onnx::AttributeProto>& attributes) {
  OnnxBuilder model(11);
  model.Input("x", {1, 1, 1, 2}).Integers("at", {1, 6});
  model.Integers("dims", {1, 1, 1, 2}).Node("Reshape", {"at", "dims"}, {"i"});
  return model.Node("MaxUnpool", {"x", "i"}, {"y"}, attributes).Output("y");
}

TEST(MaxUnpoolTest, ElementsGoBackToWhereTheyWere) {
  const OnnxBuilder model = UnpoolModel({Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  EXPECT_EQ(Computed(model, {{1, 1, 1, 2}}, {{5, 7}}),
            (std::vector<Elements>{{0, 5, 0, 0, 0, 0, 7, 0}}));
}

TEST(MaxUnpoolTest, WhatDoesNotFitIsRefused) {
  const std::vector<onnx::AttributeProto> cases[] = {
      {Ints("kernel_shape", {2, 2}), Ints("strides", {2})},
      {Ints("kernel_shape", {2, 2}), Ints("pads", {0, -1, 0, 0})},
      {Ints("kernel_shape", {2, 0})},
      {Ints("strides", {2, 2})},
  };
  for (const auto& attributes : cases) {
    EXPECT_THAT(BuiltText(UnpoolModel(attributes), {{1, 1, 1, 2}}),
                HasSubstr("kernel_shape, strides and pads do not fit each other"));
  }
}

}  // namespace
}  // namespace tilewire::reader
