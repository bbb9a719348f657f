// SPDX-License-Identifier: Apache-2.0
//
// Det (engine/onnx/ops/arithmetic/determinant.cc) of known matrices, and what is refused; computed
// ones are in tests/conformance.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(DeterminantTest, KnownMatrices) {
  OnnxBuilder model(13);
  model.Input("x", {3});
  // A triangle, two rows the other way round, one that needs a pivot and has no inverse.
  model.Floats("m", {3, 3, 3}, {2, 5, 7, 0, 3, 9, 0, 0, 4,  //
                                0, 1, 0, 1, 0, 0, 0, 0, 1,  //
                                0, 2, 1, 0, 4, 3, 0, 6, 5});
  model.Node("Det", {"m"}, {"d"}).Node("Add", {"x", "d"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{3}}, {{0, 0, 0}}), (std::vector<Elements>{{24, -1, 0}}));
}

TEST(DeterminantTest, Refusals) {
  const auto refused = [](const std::vector<int64_t>& dims) {
    OnnxBuilder model(13);
    model.Input("x", {1}).Floats("m", dims).Node("Det", {"m"}, {"d"});
    model.Node("Add", {"x", "d"}, {"y"}).Output("y");
    return BuiltText(model, {{1}});
  };
  EXPECT_THAT(refused({2, 3}), HasSubstr("of [2,3], which are not square matrices"));
  EXPECT_THAT(refused({4}), HasSubstr("of [4], which are not square matrices"));
  EXPECT_THAT(refused({1025, 1025}), HasSubstr("of more than 1024 rows"));
}

}  // namespace
}  // namespace tilewire::reader
