// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

TEST(ScatterTest, ElementsAtKnownPlacesOfAnAxis) {
  OnnxBuilder model(16);
  model.Input("x", {2, 3}).Input("u", {2, 1});
  const int64_t indices[] = {2, -3};
  model.Tensor("i", {2, 1}, onnx::TensorProto::INT64)->set_raw_data(indices, sizeof(indices));
  model.Node("ScatterElements", {"x", "i", "u"}, {"y"}, {Int("axis", 1)}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 3}, {2, 1}}, {{1, 2, 3, 4, 5, 6}, {10, 20}}),
            (std::vector<Elements>{{1, 2, 10, 20, 5, 6}}));
}

TEST(ScatterTest, RowsByTuplesAndTheLastOfTwoCounts) {
  OnnxBuilder model(16);
  model.Input("x", {3, 2}).Floats("u", {2, 2}, {10, 11, 20, 21});
  const int64_t indices[] = {1, -2};
  model.Tensor("i", {2, 1}, onnx::TensorProto::INT64)->set_raw_data(indices, sizeof(indices));
  model.Node("ScatterND", {"x", "i", "u"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{3, 2}}, {{1, 2, 3, 4, 5, 6}}),
            (std::vector<Elements>{{1, 2, 20, 21, 5, 6}}));
}

TEST(ScatterTest, ConstantsFold) {
  OnnxBuilder model(16);
  model.Input("x", {3}).Floats("c", {3}, {1, 2, 3}).Floats("u", {1}, {9}).Integers("i", {1});
  model.Node("ScatterElements", {"c", "i", "u"}, {"s"}).Node("Add", {"x", "s"}, {"y"});
  model.Output("y");
  EXPECT_EQ(Computed(model, {{3}}, {{0, 0, 0}}), (std::vector<Elements>{{1, 9, 3}}));
}

// Places 2, 0, 2 and 2 of 1, 2, 3; the updates are 4, 5, 6, 7.
TEST(ScatterTest, UpdatesOfOnePlaceAreReduced) {
  const struct {
    const char* reduction;
    Elements expected;
  } cases[] = {{"add", {6, 2, 20}}, {"mul", {5, 2, 504}}, {"max", {5, 2, 7}}, {"min", {1, 2, 3}}};
  for (const auto& one : cases) {
    SCOPED_TRACE(one.reduction);
    const std::vector<onnx::AttributeProto> attributes = {String("reduction", one.reduction)};
    OnnxBuilder computed(18), known(18);
    computed.Input("x", {3}).Input("u", {4}).Integers("i", {2, 0, -1, 2});
    computed.Node("ScatterElements", {"x", "i", "u"}, {"y"}, attributes).Output("y");
    EXPECT_EQ(Computed(computed, {{3}, {4}}, {{1, 2, 3}, {4, 5, 6, 7}})[0], one.expected);
    known.Input("x", {3}).Integers("c", {1, 2, 3}).Integers("u", {4, 5, 6, 7});
    known.Integers("i", {2, 0, -1, 2}).Node("ScatterElements", {"c", "i", "u"}, {"s"}, attributes);
    known.Node("Cast", {"s"}, {"f"}, {Int("to", 1)}).Node("Add", {"x", "f"}, {"y"}).Output("y");
    EXPECT_EQ(Computed(known, {{3}}, {{0, 0, 0}})[0], one.expected);
  }
}

TEST(ScatterTest, AnIndexOutsideIsNamed) {
  OnnxBuilder model(16);
  model.Input("x", {4}).Input("u", {2}).Integers("i", {-4, 4});
  model.Node("ScatterElements", {"x", "i", "u"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{4}, {2}}),
              HasSubstr("index 4, element 1 of input 1, is outside a dimension of 4: allowed are "
                        "-4 to 3"));
}

TEST(ScatterTest, Refusals) {
  ExpectInvalid({
      {"no such row", "ScatterND", {"x", "shape", "m"}, {}, "updates [2,3], expected [4,8,8]"},
      {"another rank", "ScatterElements", {"x", "four", "two"}, {}, "do not fit the input"},
  });
  ExpectInvalid({
      {"means",
       "ScatterND",
       {"x", "four", "x"},
       {String("reduction", "mean")},
       "reduction 'mean'",
       18},
  });
}

}  // namespace
}  // namespace tilewire::reader
