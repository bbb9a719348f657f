// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(GatherElementsTest, KnownIndicesAreASelection) {
  OnnxBuilder model;
  model.Input("x", {3, 2});
  const int64_t indices[] = {2, 0, -3};
  model.Tensor("i", {3, 1}, onnx::TensorProto::INT64)->set_raw_data(indices, sizeof(indices));
  model.Node("GatherElements", {"x", "i"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{3, 2}}, {{1, 2, 3, 4, 5, 6}}), (std::vector<Elements>{{5, 1, 1}}));
}

TEST(GatherElementsTest, TuplesNameRowsOfAMatrix) {
  OnnxBuilder model;
  model.Input("x", {2, 2, 2});
  const int64_t tuples[] = {1, 0, 0, -1};
  model.Tensor("i", {2, 2}, onnx::TensorProto::INT64)->set_raw_data(tuples, sizeof(tuples));
  model.Node("GatherND", {"x", "i"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 2, 2}}, {{1, 2, 3, 4, 5, 6, 7, 8}}),
            (std::vector<Elements>{{5, 6, 3, 4}}));
}

// Known indices, and the same given at run time.
TEST(GatherElementsTest, TuplesOfEachBatch) {
  OnnxBuilder model;
  model.Input("x", {2, 2, 3}).Input("r", {2, 1, 2}, onnx::TensorProto::INT64);
  const int64_t tuples[] = {1, 0, 0, -1};
  model.Tensor("i", {2, 1, 2}, onnx::TensorProto::INT64)->set_raw_data(tuples, sizeof(tuples));
  model.Tensor("row", {2, 1}, onnx::TensorProto::INT64)->set_raw_data(tuples, sizeof(tuples) / 2);
  model.Node("GatherND", {"x", "i"}, {"y"}, {Int("batch_dims", 1)}).Output("y");
  model.Node("GatherND", {"x", "r"}, {"z"}, {Int("batch_dims", 1)}).Output("z");
  model.Node("GatherND", {"x", "row"}, {"rows"}, {Int("batch_dims", 1)}).Output("rows");
  EXPECT_EQ(Computed(model, {{2, 2, 3}, {2, 1, 2}},
                     {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {1, 0, 0, -1}}),
            (std::vector<Elements>{{4, 9}, {4, 9}, {4, 5, 6, 7, 8, 9}}));
}

TEST(GatherElementsTest, Refusals) {
  ExpectInvalid({
      {"another rank", "GatherElements", {"m", "shape"}, {}, "another rank"},
      {"batches that differ", "GatherND", {"x", "shape"}, {Int("batch_dims", 1)}, "batch_dims 1"},
      {"too many indices", "GatherND", {"m", "w"}, {}, "not integers"},
  });
}

}  // namespace
}  // namespace tilewire::reader
