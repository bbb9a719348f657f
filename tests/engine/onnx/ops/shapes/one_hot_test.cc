// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(OneHotTest, AlongANewAxis) {
  OnnxBuilder model;
  model.Input("i", {2}, onnx::TensorProto::INT64).Integers("depth", {2}).Floats("v", {2}, {0, 3});
  model.Node("OneHot", {"i", "depth", "v"}, {"y"}, {Int("axis", 0)}).Output("y");
  EXPECT_EQ(Computed(model, {{2}}, {{1, -2}}), (std::vector<Elements>{{0, 3, 3, 0}}));
}

TEST(OneHotTest, HardmaxBeforeOpset13IsOfRows) {
  OnnxBuilder model(11);
  model.Input("x", {1, 2, 2}).Node("Hardmax", {"x"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{1, 2, 2}}, {{1, 3, 9, 9}}), (std::vector<Elements>{{0, 0, 1, 0}}));
}

TEST(OneHotTest, ADepthThatIsTooLargeIsNamed) {
  OnnxBuilder model;
  model.Input("i", {2}, onnx::TensorProto::INT64).Integers("depth", {int64_t{1} << 62});
  model.Floats("v", {2}, {0, 3}).Node("OneHot", {"i", "depth", "v"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{2}}),
              HasSubstr("a depth of 4611686018427387904; allowed are 1 to 1048576"));
}

TEST(OneHotTest, Refusals) {
  ExpectInvalid({
      {"not two values", "OneHot", {"x", "shape", "w"}, {}, "the values are not two"},
      {"no such axis", "OneHot", {"x", "shape", "two"}, {Int("axis", 5)}, "axis 5 is outside"},
  });
}

}  // namespace
}  // namespace tilewire::reader
