// SPDX-License-Identifier: Apache-2.0
//
// Inputs that leave any of their dimensions open, or their rank: what the signature says of them,
// and answers for several shapes of one model.
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

// Names the dimension of an input, which is then open.
void Name(OnnxBuilder& model, int input, int dim, const char* symbol) {
  auto* type = model.graph().mutable_input(input)->mutable_type()->mutable_tensor_type();
  type->mutable_shape()->mutable_dim(dim)->set_dim_param(symbol);
}

Given Ones(const Dims& dims) {
  return {dims, Bytes(std::vector<float>(*ElementCount(dims), 1.0f))};
}

TEST(OpenShapesTest, BatchAndSamples) {
  OnnxBuilder model;
  model.Input("x", {-1, -1}).Integers("axes", {1});
  model.Node("Unsqueeze", {"x", "axes"}, {"u"}).Floats("w", {1, 1, 4}, {1, 2, 3, 4});
  model.Node("Conv", {"u", "w"}, {"y"}, {Ints("strides", {2})}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->signature().inputs[0].dims, (Dims{-1, -1}));
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, (Dims{-1, 1, -1}));
  ExpectTensor<float>(**loaded, {Ones({1, 6})}, {1, 1, 2}, {10, 10});
  ExpectTensor<float>(**loaded, {Ones({2, 4})}, {2, 1, 1}, {10, 10});
  ExpectTensor<float>(**loaded, {{{1, 4}, Bytes<float>({1, 0, 0, 1})}}, {1, 1, 1}, {5});
  EXPECT_THAT(AnswerOf(**loaded, {Ones({1, 3})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "a window of 4 does not fit 3"));
}

TEST(OpenShapesTest, ChannelsLastWithOpenHeightAndWidth) {
  OnnxBuilder model;
  model.Input("x", {-1, -1, -1, 2}).Floats("w", {1, 2, 1, 1}, {1, 10});
  model.Node("Transpose", {"x"}, {"t"}, {Ints("perm", {0, 3, 1, 2})});
  model.Node("Conv", {"t", "w"}, {"c"})
      .Node("Transpose", {"c"}, {"y"}, {Ints("perm", {0, 2, 3, 1})});
  model.Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, (Dims{-1, -1, -1, 1}));
  ExpectTensor<float>(**loaded, {{{1, 1, 2, 2}, Bytes<float>({1, 2, 3, 4})}}, {1, 1, 2, 1},
                      {21, 43});
  ExpectTensor<float>(**loaded, {{{1, 2, 1, 2}, Bytes<float>({1, 2, 3, 4})}}, {1, 2, 1, 1},
                      {21, 43});
}

TEST(OpenShapesTest, OpenChannels) {
  OnnxBuilder model;
  model.Input("x", {1, -1, 2, 2}).Node("GlobalAveragePool", {"x"}, {"y"}).Output("y");
  for (int64_t channels : {1, 3, 17}) {
    ExpectTensor<float>(model, {Ones({1, channels, 2, 2})}, {1, channels, 1, 1},
                        std::vector<float>(channels, 1));
  }
}

TEST(OpenShapesTest, WithoutADeclaredShape) {
  OnnxBuilder model;
  model.Input("x", {}).Node("Add", {"x", "x"}, {"y"}).Output("y");
  model.graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->clear_shape();
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE((*loaded)->signature().inputs[0].any_rank);
  EXPECT_TRUE((*loaded)->signature().outputs[0].any_rank);
  ExpectTensor<float>(**loaded, {Ones({2, 1, 3})}, {2, 1, 3}, {2, 2, 2, 2, 2, 2});
  ExpectTensor<float>(**loaded, {Ones({})}, {}, {2});
  ExpectTensor<float>(**loaded, {Ones({2})}, {2}, {2, 2});
  ExpectTensor<float>(**loaded, {{{0, 5}, ""}}, {0, 5}, {});
  const Dims deep(kMaxRank + 1, 1);
  EXPECT_THAT(AnswerOf(**loaded, {Ones(deep)}),
              StatusIs(absl::StatusCode::kInvalidArgument, "does not match any shape"));
}

TEST(OpenShapesTest, NamesSayWhichDimensionsAreEqual) {
  OnnxBuilder model;
  model.Input("past", {-1, 2}).Input("new", {-1, 2}).Input("mask", {1, -1});
  Name(model, 0, 0, "past");
  Name(model, 1, 0, "new");
  Name(model, 2, 1, "past + new");
  model.Node("Concat", {"past", "new"}, {"all"}, {Int("axis", 0)});
  model.Node("MatMul", {"mask", "all"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, (Dims{1, 2}));
  ExpectTensor<float>(**loaded, {{{0, 2}, ""}, Ones({1, 2}), Ones({1, 1})}, {1, 2}, {1, 1});
  ExpectTensor<float>(**loaded, {Ones({3, 2}), Ones({1, 2}), Ones({1, 4})}, {1, 2}, {4, 4});
  EXPECT_THAT(AnswerOf(**loaded, {Ones({3, 2}), Ones({1, 2}), Ones({1, 3})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "does not fit"));
}

// A product over 7 elements: none of the sizes that are tried at load fits.
TEST(OpenShapesTest, ALengthThatOnlyTheRequestKnows) {
  OnnxBuilder model;
  model.Input("x", {1, -1}).Floats("w", {7, 2}, std::vector<float>(14, 2));
  model.Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectTensor<float>(**loaded, {Ones({1, 7})}, {1, 2}, {14, 14});
  EXPECT_THAT(AnswerOf(**loaded, {Ones({1, 6})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "does not fit B of 7 inputs"));
}

TEST(OpenShapesTest, PlansOfManyShapesAreBounded) {
  OnnxBuilder model;
  model.Input("x", {-1, -1}).Node("Relu", {"x"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (int64_t length = 1; length <= 200; ++length)
    ExpectTensor<float>(**loaded, {Ones({1, length})}, {1, length}, std::vector<float>(length, 1));
  int known = 0;
  for (int64_t length = 1; length <= 200; ++length) {
    known += (*loaded)->PlannedOperations({{{{1, length}, Layout::kNchw, {}}}}).has_value();
  }
  EXPECT_GT(known, 0);
  EXPECT_LE(known, 32);
}

// A model that replaces this one is warmed up on them.
TEST(OpenShapesTest, PlannedShapesKeepTheOneInUseAndLeaveOutAFailedOne) {
  OnnxBuilder model;
  model.Input("x", {1, 1, -1}).Floats("w", {1, 1, 4}, {1, 2, 3, 4});
  model.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto run = [&](int64_t length) {
    return AnswerOf(**loaded, {Ones({1, 1, length})}).status();
  };
  const std::vector<Dims> in_use = {{1, 1, 4}}, failed = {{1, 1, 3}}, last = {{1, 1, 36}};
  EXPECT_THAT(run(4), IsOk());
  EXPECT_THAT(run(3), StatusIs(absl::StatusCode::kInvalidArgument, "a window of 4 does not fit 3"));
  EXPECT_THAT((*loaded)->PlannedShapes(), ElementsAre(in_use));
  for (int64_t length = 5; length <= 36; ++length) {  // as many others as there may be plans
    EXPECT_THAT(run(length), IsOk());
    EXPECT_THAT(run(4), IsOk());
  }
  const std::vector<std::vector<Dims>> shapes = (*loaded)->PlannedShapes();
  ASSERT_EQ(shapes.size(), 32u);
  EXPECT_EQ(shapes[0], in_use);
  EXPECT_EQ(shapes[1], last);
  EXPECT_THAT(shapes, Not(Contains(failed)));
}

// Where elements that are computed decide sizes, later stages have plans, too.
TEST(OpenShapesTest, PlannedShapesAreOfInputsAndNotOfLaterStages) {
  OnnxBuilder model;
  model.Input("x", {-1}).Node("NonZero", {"x"}, {"i"}).Node("Add", {"i", "i"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (int64_t length : {3, 5, 3})
    EXPECT_THAT(AnswerOf(**loaded, {Ones({length})}).status(), IsOk());
  const std::vector<std::vector<Dims>> shapes = (*loaded)->PlannedShapes();
  ASSERT_GE(shapes.size(), 2u);
  EXPECT_EQ(shapes[0], std::vector<Dims>{{3}});
  EXPECT_EQ(shapes[1], std::vector<Dims>{{5}});
  for (const std::vector<Dims>& dims : shapes) EXPECT_EQ(dims.size(), 1u);
}

}  // namespace
}  // namespace tilewire::testing
