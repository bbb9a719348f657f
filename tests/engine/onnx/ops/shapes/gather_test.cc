// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/shapes/gather.cc become.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(GatherTest, GatherOfComputedIndices) {
  OnnxBuilder model;
  model.Input("x", {2, 5}).Floats("table", {5, 3});
  model.Node("ArgMax", {"x"}, {"at"}, {Int("axis", 1), Int("keepdims", 0)});
  model.Node("Gather", {"table", "at"}, {"y"})
      .Node("Gather", {"x", "at"}, {"z"}, {Int("axis", -1)});
  model.Output("y").Output("z");
  const std::string text = BuiltText(model, {{2, 5}});
  EXPECT_THAT(text, HasSubstr("y [2,3] = gather(y/table, at) axis=0\n"));
  EXPECT_THAT(text, HasSubstr("z [2,2] = gather(x, at) axis=1\n"));
}

}  // namespace
}  // namespace tilewire::reader
