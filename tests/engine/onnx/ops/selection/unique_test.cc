// SPDX-License-Identifier: Apache-2.0
//
// Unique of constants, at load; tests/engine/facade/cut_test.cc has what is computed.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// The outputs of Unique of c, [2,4], as real numbers.
std::vector<Elements> Found(const std::vector<onnx::AttributeProto>& attributes) {
  OnnxBuilder model;
  model.Input("x", {1}).Floats("c", {2, 4}, {2, 1, 1, 2, 4, 3, 5, 4});
  model.Node("Unique", {"c"}, {"y", "first", "inverse", "count"}, attributes).Output("y");
  for (const char* name : {"first", "inverse", "count"})
    model.Output(name, onnx::TensorProto::INT64);
  return Computed(model, {{1}}, {{0}});
}

TEST(UniqueTest, ElementsAndColumns) {
  EXPECT_EQ(Found({}),
            (std::vector<Elements>{
                {1, 2, 3, 4, 5}, {1, 0, 5, 4, 6}, {1, 0, 0, 1, 3, 2, 4, 3}, {2, 2, 1, 2, 1}}));
  EXPECT_EQ(Found({Int("sorted", 0)}),
            (std::vector<Elements>{
                {2, 1, 4, 3, 5}, {0, 1, 4, 5, 6}, {0, 1, 1, 0, 2, 3, 4, 2}, {2, 2, 2, 1, 1}}));
  EXPECT_EQ(Found({Int("axis", 1)}),
            (std::vector<Elements>{{1, 1, 2, 3, 5, 4}, {1, 2, 0}, {2, 0, 1, 2}, {1, 1, 2}}));
}

TEST(UniqueTest, Refusals) {
  ExpectInvalid({
      {"no such axis", "Unique", {"shape"}, {Int("axis", 1)}, "axis 1 is outside rank 1"},
      {"neither sorted nor not", "Unique", {"shape"}, {Int("sorted", 2)}, "sorted 2"},
  });
}

}  // namespace
}  // namespace tilewire::reader
