// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(CompressTest, TakesWhatIsTrue) {
  OnnxBuilder model;
  model.Input("x", {3, 2});
  onnx::TensorProto* condition = model.Tensor("c", {3}, onnx::TensorProto::BOOL);
  for (int truth : {0, 1, 1}) condition->add_int32_data(truth);
  model.Node("Compress", {"x", "c"}, {"rows"}, {Int("axis", 0)}).Output("rows");
  model.Node("Compress", {"x", "c"}, {"flat"}).Output("flat");
  EXPECT_EQ(Computed(model, {{3, 2}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{3, 4, 5, 6}, {2, 3}}));
}

TEST(CompressTest, NonZeroListsIndices) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Floats("c", {2, 3}, {0, 1, 0, 2, 0, -1});
  model.Node("NonZero", {"c"}, {"i"}).Node("Transpose", {"i"}, {"t"});
  model.Node("GatherND", {"x", "t"}, {"y"}).Output("y").Output("i", onnx::TensorProto::INT64);
  EXPECT_EQ(Computed(model, {{2, 3}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{2, 4, 6}, {0, 1, 1, 1, 0, 2}}));
}

TEST(CompressTest, Refusals) {
  ExpectInvalid({{"too long", "Compress", {"two", "shape"}, {Int("axis", 1)}, "axis 1"},
                 {"floats", "Compress", {"x", "two"}, {}, "not of integers"}});
}

}  // namespace
}  // namespace tilewire::reader
