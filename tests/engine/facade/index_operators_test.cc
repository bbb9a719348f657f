// SPDX-License-Identifier: Apache-2.0
//
// Operators that are made of several operations, run on the engine: what they compute for integers
// and real numbers, and what they refuse.
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using onnx::AttributeProto;
using onnx::TensorProto;

constexpr int64_t kWide = (int64_t{1} << 53) + 1;  // f64 does not hold it

TEST(IndexOperatorsTest, GatherElementsByComputedAndKnownIndices) {
  for (bool computed : {true, false}) {
    OnnxBuilder model;
    model.Input("x", {2, 2}, TensorProto::INT64);
    std::vector<std::string> inputs = {Bytes<int64_t>({kWide, 2, 3, 4})};
    const std::vector<int64_t> indices = {0, 0, -1, 0};
    if (computed) {
      model.Input("i", {2, 2}, TensorProto::INT64);
      inputs.push_back(Bytes(indices));
    } else {
      model.Tensor("i", {2, 2}, TensorProto::INT64)->set_raw_data(Bytes(indices));
    }
    model.Node("GatherElements", {"x", "i"}, {"y"}, {Int("axis", 1)});
    model.Output("y", TensorProto::INT64);
    ExpectAnswer<int64_t>(model, inputs, {kWide, kWide, 4, 3});
  }
}

TEST(IndexOperatorsTest, GatherNdTakesRowsAndElements) {
  OnnxBuilder rows;
  rows.Input("x", {2, 2}).Input("i", {2, 1}, TensorProto::INT64);
  rows.Node("GatherND", {"x", "i"}, {"y"}).Output("y");
  ExpectAnswer<float>(rows, {Bytes<float>({1, 2, 3, 4}), Bytes<int64_t>({1, -2})}, {3, 4, 1, 2});
  OnnxBuilder elements;
  elements.Input("x", {2, 2}).Input("i", {2, 2}, TensorProto::INT64);
  elements.Node("GatherND", {"x", "i"}, {"y"}).Output("y");
  ExpectAnswer<float>(elements, {Bytes<float>({1, 2, 3, 4}), Bytes<int64_t>({0, 1, -1, 0})},
                      {2, 3});
  EXPECT_THAT(Answer(elements, {Bytes<float>({1, 2, 3, 4}), Bytes<int64_t>({0, 2, 0, 0})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "index 4 is outside"));
}

TEST(IndexOperatorsTest, OneSideOfADiagonal) {
  OnnxBuilder model(14);
  model.Input("x", {2, 3}, TensorProto::INT64).Integers("k", {-1});
  model.Node("Trilu", {"x", "k"}, {"y"}, {Int("upper", 0)}).Output("y", TensorProto::INT64);
  ExpectAnswer<int64_t>(model, {Bytes<int64_t>({1, 2, 3, kWide, 5, 6})}, {0, 0, 0, kWide, 0, 0});
  const float infinity = std::numeric_limits<float>::infinity();
  OnnxBuilder mask(14);
  mask.Input("x", {2, 2}).Node("Trilu", {"x"}, {"y"}).Output("y");
  ExpectAnswer<float>(mask, {Bytes<float>({-infinity, 2, infinity, 4})}, {-infinity, 2, 0, 4});
}

TEST(IndexOperatorsTest, ADiagonalOfOnes) {
  OnnxBuilder model;
  model.Input("x", {2, 3}, TensorProto::INT32);
  model.Node("EyeLike", {"x"}, {"y"}, {Int("k", 1), Int("dtype", TensorProto::FLOAT)});
  model.Output("y");
  ExpectAnswer<float>(model, {Bytes<int32_t>({1, 2, 3, 4, 5, 6})}, {0, 1, 0, 0, 0, 1});
}

TEST(IndexOperatorsTest, SumsUpToEachElement) {
  struct Row {
    int64_t exclusive, reverse;
    std::vector<int64_t> expected;
  };
  for (const Row& row : {Row{0, 0, {1, 3, 6, kWide + 6}}, Row{1, 0, {0, 1, 3, 6}},
                         Row{0, 1, {kWide + 6, kWide + 5, kWide + 3, kWide}},
                         Row{1, 1, {kWide + 5, kWide + 3, kWide, 0}}}) {
    OnnxBuilder model(14);
    model.Input("x", {4}, TensorProto::INT64).Integers("axis", {0});
    model.Node("CumSum", {"x", "axis"}, {"y"},
               {Int("exclusive", row.exclusive), Int("reverse", row.reverse)});
    model.Output("y", TensorProto::INT64);
    ExpectAnswer<int64_t>(model, {Bytes<int64_t>({1, 2, 3, kWide})}, row.expected);
  }
}

TEST(IndexOperatorsTest, OneHotOfNegativeAndMissingIndices) {
  OnnxBuilder model;
  model.Input("i", {3}, TensorProto::INT64).Integers("depth", {3}).Floats("values", {2}, {-1, 5});
  model.Node("OneHot", {"i", "depth", "values"}, {"y"}).Output("y");
  ExpectAnswer<float>(model, {Bytes<int64_t>({1, -1, 7})}, {-1, 5, -1, -1, -1, 5, -1, -1, -1});
}

TEST(IndexOperatorsTest, TheFirstLargestElement) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("Hardmax", {"x"}, {"y"}).Output("y");
  ExpectAnswer<float>(model, {Bytes<float>({1, 4, 4, 3, 2, 1})}, {0, 1, 0, 1, 0, 0});
}

TEST(IndexOperatorsTest, BitsOfIntegers) {
  OnnxBuilder model(18);
  model.Input("x", {2}, TensorProto::UINT16).Input("z", {2}, TensorProto::UINT16);
  model.Node("BitwiseXor", {"x", "z"}, {"a"}).Node("BitwiseNot", {"a"}, {"b"});
  model.Node("BitShift", {"b", "z"}, {"y"}, {String("direction", "RIGHT")});
  model.Output("y", TensorProto::UINT16);
  ExpectAnswer<uint16_t>(model, {Bytes<uint16_t>({0xFF00, 1}), Bytes<uint16_t>({4, 16})},
                         {0x00FB >> 4, 0});
}

TEST(IndexOperatorsTest, NormalizationsByGroupsRootsAndNorms) {
  OnnxBuilder groups(21);
  groups.Input("x", {1, 4, 1}).Floats("s", {4}, {1, 2, 1, 1}).Floats("b", {4}, {0, 0, 1, 0});
  groups.Node("GroupNormalization", {"x", "s", "b"}, {"y"},
              {Int("num_groups", 2), Float("epsilon", 0)});
  groups.Output("y");
  ExpectAnswer<float>(groups, {Bytes<float>({1, 3, 2, 6})}, {-1, 2, 0, 1});
  OnnxBuilder roots(23);
  roots.Input("x", {1, 4}).Floats("s", {4}, {1, 1, 2, 1});
  roots.Node("RMSNormalization", {"x", "s"}, {"y"}, {Float("epsilon", 0)}).Output("y");
  ExpectAnswer<float>(roots, {Bytes<float>({2, -2, 2, 2})}, {1, -1, 2, 1});
  OnnxBuilder norms;
  norms.Input("x", {1, 2}).Node("LpNormalization", {"x"}, {"y"}, {Int("p", 1)}).Output("y");
  ExpectAnswer<float>(norms, {Bytes<float>({-1, 3})}, {-0.25f, 0.75f});
}

TEST(IndexOperatorsTest, ReverseSequenceRefusesLengthsThatARunComputes) {
  OnnxBuilder model(13);
  model.Input("x", {3, 2}).Input("n", {2}, TensorProto::INT64);
  model.Node("ReverseSequence", {"x", "n"}, {"y"}).Output("y");
  const std::string x = Bytes<float>({0, 1, 2, 3, 4, 5});
  ExpectAnswer<float>(model, {x, Bytes<int64_t>({0, 3})}, {0, 5, 2, 3, 4, 1});
  for (const int64_t length : {int64_t{-1}, int64_t{4}, std::numeric_limits<int64_t>::min() / 2}) {
    EXPECT_THAT(Answer(model, {x, Bytes<int64_t>({length, 3})}),
                StatusIs(absl::StatusCode::kInvalidArgument, "is outside the 6 elements"))
        << length;
  }
}

TEST(IndexOperatorsTest, WhatDoesNotFitIsRefusedWithItsReason) {
  struct Row {
    const char* op;
    std::vector<AttributeProto> attributes;
    std::vector<std::string> inputs;
    const char* message;
  };
  for (const Row& row : std::vector<Row>{
           {"GatherND", {Int("batch_dims", 1)}, {"x", "i"}, "batch_dims 1"},
           {"GatherElements", {Int("axis", 2)}, {"x", "i"}, "axis 2 is outside rank 2"},
           {"Trilu", {}, {"x", "i"}, "k is not one number"},
           {"CumSum", {}, {"x", "i"}, "the axis is not one number"},
           {"OneHot", {}, {"i", "one", "x"}, "the values are not two"},
           {"BitShift", {String("direction", "UP")}, {"i", "i"}, "direction 'UP'"},
           {"LpNormalization", {Int("p", 3)}, {"x"}, "p 3"},
           {"EyeLike", {Int("k", std::numeric_limits<int64_t>::min())}, {"x"}, "diagonal"},
       }) {
    SCOPED_TRACE(row.op);
    OnnxBuilder model(18);
    model.Input("x", {2, 2}).Integers("i", {0, 1}).Integers("one", {1});
    model.Node(row.op, row.inputs, {"y"}, row.attributes).Output("y");
    const absl::Status status = Load(model).status();
    EXPECT_FALSE(status.ok());
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(row.message));
  }
}

}  // namespace
}  // namespace tilewire::testing
