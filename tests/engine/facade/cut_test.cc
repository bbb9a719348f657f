// SPDX-License-Identifier: Apache-2.0
//
// Models with sizes that are known only once something is computed: the answers of each operator
// that finds how much it gives, of those that read such a size, of branches and loops that are
// decided at run time, and what is refused.
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "engine/explanation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

Given Numbers(const Dims& dims, const std::vector<float>& numbers) {
  return {dims, Bytes(numbers)};
}

// Too large for an input whose elements decide shapes.
constexpr int64_t kRowSize = 2000;

// x of kRowSize elements, all 0 but these.
Given Row(const std::vector<std::pair<int64_t, float>>& elements) {
  std::vector<float> numbers(kRowSize, 0);
  for (const auto& [at, number] : elements) numbers[at] = number;
  return Numbers({1, kRowSize}, numbers);
}

TEST(CutTest, NonZeroOfWhatIsComputed) {
  OnnxBuilder model;
  model.Input("x", {-1, -1}).Node("Relu", {"x"}, {"r"}).Node("NonZero", {"r"}, {"y"});
  model.Output("y", TensorProto::INT64);
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE((*loaded)->signature().inputs[0].decides_shapes);
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, (Dims{2, -1}));
  ExpectTensor<int64_t>(**loaded, {Numbers({2, 3}, {1, -1, 0, 0, 2, 3})}, {2, 3},
                        {0, 1, 1, 0, 1, 2});
  ExpectTensor<int64_t>(**loaded, {Numbers({2, 1}, {-1, -2})}, {2, 0}, {});
  ExpectTensor<int64_t>(**loaded, {Numbers({0, 3}, {})}, {2, 0}, {});
  ExpectTensor<int64_t>(**loaded, {Row({{7, 1}, {1999, 2}, {3, -1}})}, {2, 2}, {0, 0, 7, 1999});
}

TEST(CutTest, RunsInStagesAreCounted) {
  OnnxBuilder staged, whole;
  staged.Input("x", {-1, -1}).Node("Relu", {"x"}, {"r"}).Node("NonZero", {"r"}, {"y"});
  staged.Output("y", TensorProto::INT64);
  whole.Input("x", {-1, -1}).Node("Relu", {"x"}, {"y"}).Output("y");
  const auto counts = [] { return EngineOfModels().stage_counts(); };
  const auto loaded = Load(staged);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const StageCounts before = counts();
  ASSERT_TRUE(AnswerOf(**loaded, {Numbers({1, 2}, {1, -1})}).ok());
  const StageCounts first = counts();
  EXPECT_EQ(first.runs, before.runs + 1);
  EXPECT_GT(first.plans, before.plans);
  ASSERT_TRUE(AnswerOf(**loaded, {Numbers({1, 2}, {2, -1})}).ok());
  ASSERT_TRUE(AnswerOf(whole, {Numbers({1, 2}, {1, -1})}).ok());
  EXPECT_EQ(counts().runs, first.runs + 1) << "not those of whole models";
  EXPECT_EQ(counts().plans, first.plans) << "plans serve again";
  ASSERT_TRUE(AnswerOf(**loaded, {Numbers({1, 3}, {1, -1, 2})}).ok());
  EXPECT_GT(counts().plans, first.plans);
}

TEST(CutTest, PlansAreCountedWhileTheyAreKept) {
  OnnxBuilder model;
  model.Input("x", {-1, -1}).Node("Relu", {"x"}, {"y"}).Output("y");
  const auto counts = [] { return EngineOfModels().plan_counts(); };
  const PlanCounts before = counts();
  {
    const auto loaded = Load(model);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(counts().built, before.built) << "no shape is known";
    for (const int64_t width : {3, 4, 3})
      ASSERT_TRUE(AnswerOf(**loaded, {Numbers({1, width}, std::vector<float>(width, 1))}).ok());
    EXPECT_EQ(counts().built, before.built + 2) << "one for each shape";
    EXPECT_EQ(counts().kept, before.kept + 2);
    EXPECT_GT(counts().building, before.building);
  }
  EXPECT_EQ(counts().kept, before.kept) << "they are gone with their model";
  EXPECT_EQ(counts().built, before.built + 2);
}

TEST(CutTest, CompressByAComputedMaskAndWhatFollows) {
  OnnxBuilder model;
  model.Input("x", {1, kRowSize})
      .Floats("half", {1}, {0.5f})
      .Node("Greater", {"x", "half"}, {"more"});
  model.Integers("flat", {-1}).Node("Reshape", {"more", "flat"}, {"mask"});
  model.Node("Compress", {"x", "mask"}, {"c"}, {Int("axis", 1)}).Node("Neg", {"c"}, {"n"});
  model.Node("Add", {"n", "half"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, (Dims{1, -1}));
  ExpectTensor<float>(**loaded, {Row({{5, 1}, {6, 0.25f}, {9, 3}})}, {1, 2}, {-0.5f, -2.5f});
  ExpectTensor<float>(**loaded, {Row({})}, {1, 0}, {});
}

TEST(CutTest, UniqueElementsAndSlices) {
  OnnxBuilder flat(11);
  flat.Input("x", {1, kRowSize}).Node("Relu", {"x"}, {"r"});
  flat.Node("Unique", {"r"}, {"v", "first", "inverse", "y"}).Output("y", TensorProto::INT64);
  ExpectTensor<int64_t>(flat, {Row({{3, 2}, {4, 2}, {5, 1}})}, {3}, {kRowSize - 3, 1, 2});
  OnnxBuilder rows(11);
  rows.Input("x", {4, 2}, TensorProto::INT64).Node("Add", {"x", "x"}, {"d"});
  rows.Node("Unique", {"d"}, {"y"}, {Int("axis", 0), Int("sorted", 0)});
  rows.Output("y", TensorProto::INT64);
  ExpectTensor<int64_t>(rows, {{{4, 2}, Bytes<int64_t>({2, 1, 1, 1, 2, 1, 1, 0})}}, {3, 2},
                        {4, 2, 2, 2, 2, 0});
}

// The best `most` boxes of each class, with NonMaxSuppression's other inputs in the file.
OnnxBuilder Suppression(int64_t most, float overlap, float score, bool center = false) {
  OnnxBuilder model;
  model.Input("boxes", {1, -1, 4}).Input("scores", {1, -1, -1}).Integers("most", {most});
  model.Floats("overlap", {1}, {overlap}).Floats("score", {1}, {score}).Floats("one", {1}, {1});
  model.Node("Mul", {"scores", "one"}, {"s"});
  model.Node("NonMaxSuppression", {"boxes", "s", "most", "overlap", "score"}, {"y"},
             {Int("center_point_box", center ? 1 : 0)});
  model.Output("y", TensorProto::INT64);
  return model;
}

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(CutTest, NonMaxSuppression) {
  struct Case {
    const char* why;
    int64_t most;
    float overlap, score;
    std::vector<float> scores;
    std::vector<int64_t> boxes;  // that are kept
  };
  // Two that overlap by 0.82, two equal ones, one turned around.
  const std::vector<float> corners = {0, 0,  1, 1,  0, 0.1f, 1, 1.1f, 0, 10,
                                      1, 11, 0, 10, 1, 11,   1, 101,  0, 100};
  const std::vector<Case> rows = {
      {"one of each group", 9, 0.5f, 0, {.9f, .75f, .6f, .95f, .3f}, {3, 0, 4}},
      {"no more than two", 2, 0.5f, 0, {.9f, .75f, .6f, .95f, .3f}, {3, 0}},
      {"a threshold of scores", 9, 0.5f, .4f, {.9f, .75f, .6f, .95f, .4f}, {3, 0}},
      {"equal ones may stay", 9, 1, 0, {.9f, .75f, .6f, .95f, .3f}, {3, 0, 1, 2, 4}},
      {"the first of equal scores", 9, 0.5f, 0, {.5f, .5f, .5f, .5f, .5f}, {0, 2, 4}},
      {"none", 0, 0.5f, 0, {.9f, .75f, .6f, .95f, .3f}, {}},
      {"a negative count is none", -3, 0.5f, 0, {.9f, .75f, .6f, .95f, .3f}, {}},
      {"what is not a number", 9, 0.5f, 0, {kNan, .75f, kNan, kNan, .3f}, {1, 4}},
      {"a huge count", int64_t{1} << 62, 0.5f, 0, {.9f, .75f, .6f, .95f, .3f}, {3, 0, 4}},
  };
  for (const Case& row : rows) {
    SCOPED_TRACE(row.why);
    std::vector<int64_t> expected;
    for (int64_t box : row.boxes) expected.insert(expected.end(), {0, 0, box});
    const int64_t count = static_cast<int64_t>(row.boxes.size());
    ExpectTensor<int64_t>(Suppression(row.most, row.overlap, row.score),
                          {Numbers({1, 5, 4}, corners), Numbers({1, 1, 5}, row.scores)}, {count, 3},
                          expected);
  }
  ExpectTensor<int64_t>(
      Suppression(9, 0.5f, 0, /*center=*/true),
      {Numbers({1, 2, 4}, {.5f, .5f, 1, 1, .5f, .6f, 1, 1}), Numbers({1, 2, 2}, {1, 2, 3, 1})},
      {2, 3}, {0, 0, 1, 0, 1, 0});
  EXPECT_THAT(AnswerOf(Suppression(9, 2, 0), {Numbers({1, 0, 4}, {}), Numbers({1, 1, 0}, {})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "iou_threshold 2"));
  EXPECT_THAT(AnswerOf(Suppression(9, 1, 0),
                       {Numbers({1, 2, 4}, std::vector<float>(8)), Numbers({1, 1, 3}, {1, 2, 3})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "node_y"));
}

// x whose sum is k, an s64 number in [1].
OnnxBuilder Sum() {
  OnnxBuilder model;
  model.Input("x", {1, kRowSize}).Integers("one", {1});
  model.Node("ReduceSum", {"x"}, {"s"}).Node("Cast", {"s"}, {"whole"}, {Int("to", 7)});
  model.Node("Reshape", {"whole", "one"}, {"k"});
  return model;
}

TEST(CutTest, EachOperatorThatReadsAComputedSize) {
  struct Case {
    const char* op;
    std::vector<std::string> inputs;  // t [2,3] counts from 0; k, k2 = [k, 2], zero
    Dims dims;
    std::vector<float> expected;  // where k is 2
  };
  const std::vector<Case> rows = {
      {"TopK", {"t", "k"}, {2, 2}, {2, 1, 5, 4}},
      {"Slice", {"t", "zero", "k", "one"}, {2, 2}, {0, 1, 3, 4}},
      {"ConstantOfShape", {"k2"}, {2, 2}, {0, 0, 0, 0}},
      {"Tile", {"t", "k2"}, {4, 6}, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5,
                                     0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
      {"Expand", {"half", "k2"}, {2, 2}, {.5f, .5f, .5f, .5f}},
      {"Reshape", {"four", "k2"}, {2, 2}, {1, 2, 3, 4}},
      {"Pad", {"half", "k2"}, {5}, {0, 0, .5f, 0, 0}},
      {"OneHot", {"k", "k4", "values"}, {1, 4}, {0, 0, 1, 0}},
  };
  for (const Case& row : rows) {
    SCOPED_TRACE(row.op);
    OnnxBuilder model = Sum();
    model.Floats("counted", {2, 3}, {0, 1, 2, 3, 4, 5}).Integers("two", {2}).Integers("zero", {0});
    model.Floats("half", {1}, {.5f})
        .Floats("four", {4}, {1, 2, 3, 4})
        .Floats("values", {2}, {0, 1});
    model.Node("Sub", {"x", "x"}, {"nothing"}).Node("ReduceSum", {"nothing"}, {"z"});
    model.Node("Add", {"counted", "z"}, {"t"}).Node("Add", {"k", "two"}, {"k4"});
    model.Node("Concat", {"k", "two"}, {"k2"}, {Int("axis", 0)});
    model.Node(row.op, row.inputs, {"y"}).Output("y");
    if (std::string(row.op) == "TopK") *model.graph().mutable_node()->rbegin()->add_output() = "at";
    if (std::string(row.op) == "Slice") model.graph().mutable_node()->rbegin()->set_input(3, "one");
    ExpectTensor<float>(model, {Row({{0, 1}, {1999, 1}})}, row.dims, row.expected);
  }
}

TEST(CutTest, CountsThatFollowFromEachOther) {
  // The best min(3, found) of what is found, then how often the first of them fits into range(k).
  OnnxBuilder model;
  model.Input("x", {1, kRowSize}).Node("NonZero", {"x"}, {"at"}).Node("Shape", {"at"}, {"shape"});
  model.Integers("last", {1}).Integers("three", {3}).Integers("flat", {-1});
  model.Node("Gather", {"shape", "last"}, {"found"}).Node("Min", {"found", "three"}, {"k"});
  model.Node("Transpose", {"at"}, {"rows"}).Node("GatherND", {"x", "rows"}, {"elements"});
  model.Node("TopK", {"elements", "k"}, {"best", "where"});
  model.Node("NonZero", {"best"}, {"again"}).Node("Cast", {"again"}, {"y"}, {Int("to", 1)});
  model.Output("best").Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, (Dims{-1}));
  ExpectTensor<float>(**loaded, {Row({{1, 5}, {2, 9}, {3, 7}, {4, 1}, {1000, 8}})}, {3}, {9, 8, 7});
  ExpectTensor<float>(**loaded, {Row({{1, 5}})}, {1}, {5});
  ExpectTensor<float>(**loaded, {Row({})}, {0}, {});
}

TEST(CutTest, ABranchThatIsChosenByWhatIsComputed) {
  OnnxBuilder positive, negative, model = Sum();
  positive.Node("NonZero", {"x"}, {"at"}).Node("Cast", {"at"}, {"t"}, {Int("to", 1)}).Output("t");
  negative.Node("Neg", {"s"}, {"e"}).Output("e");
  model.Floats("limit", {1}, {1}).Node("Greater", {"s", "limit"}, {"c"});
  model.Node("Reshape", {"c", "one"}, {"condition"});
  model.Node("If", {"condition"}, {"b"},
             {Graph("then_branch", positive), Graph("else_branch", negative)});
  model.Node("Abs", {"b"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectTensor<float>(**loaded, {Row({{4, 1}, {1999, 2}})}, {2, 2}, {0, 0, 4, 1999});
  ExpectTensor<float>(**loaded, {Row({{4, -3}})}, {1, 1}, {3});
}

// Doubles s, which begins as x's sum in [1,1], while it is below 100, and gathers it.
OnnxBuilder Doubling(const std::string& count, const std::string& condition) {
  OnnxBuilder body, model = Sum();
  body.Input("i", {}, TensorProto::INT64).Input("go", {}, TensorProto::BOOL).Input("v", {1, 1});
  body.Node("Add", {"v", "v"}, {"next"}).Node("Less", {"next", "hundred"}, {"less"});
  body.Node("Reshape", {"less", "none"}, {"goes_on"}).Node("Cast", {"i"}, {"f"}, {Int("to", 1)});
  body.Node("Add", {"next", "f"}, {"row"});
  body.Output("goes_on", TensorProto::BOOL).Output("next").Output("row");
  model.Floats("hundred", {1}, {100}).Integers("none", {});
  model.Node("Less", {"s", "hundred"}, {"c"}).Node("Reshape", {"c", "none"}, {"first"});
  model.Node("Loop", {count, condition, "s"}, {"z", "y"}, {Graph("body", body)});
  model.Output("y").Output("z");
  return model;
}

TEST(CutTest, ALoopThatEndsByWhatItComputes) {
  const auto loaded = Load(Doubling("", "first"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE((*loaded)->TimeVaries());
  ExpectTensor<float>(**loaded, {Row({{4, 20}})}, {3, 1, 1}, {40, 81, 162});
  ExpectTensor<float>(**loaded, {Row({{4, 51}})}, {1, 1, 1}, {102});
  ExpectTensor<float>(**loaded, {Row({{4, 100}})}, {0, 1, 1}, {});
}

TEST(CutTest, ALoopThatIsCountedByWhatIsComputed) {
  const auto loaded = Load(Doubling("k", ""));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectTensor<float>(**loaded, {Row({{4, 3}})}, {3, 1, 1}, {6, 13, 26});
  ExpectTensor<float>(**loaded, {Row({{4, -3}})}, {0, 1, 1}, {});
}

TEST(CutTest, ALoopWithoutEndStopsWithItsRequest) {
  const auto loaded = Load(Doubling("", "first"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Given x = Row({{4, -3}});  // doubled, it never reaches 100
  int asked = 0;
  const RunOptions options{.interrupted = [&] {
    return ++asked < 5000 ? absl::OkStatus() : absl::DeadlineExceededError("the deadline");
  }};
  EXPECT_THAT((*loaded)->Run({{{x.dims, Layout::kNchw, {x.bytes}}}}, {}, options),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "the deadline"));
}

TEST(CutTest, SizesOfTerabytesAreRefused) {
  OnnxBuilder model = Sum();
  model.Floats("half", {1}, {.5f})
      .Node("Mul", {"k", "k"}, {"k2"})
      .Node("Mul", {"k2", "k2"}, {"k4"});
  model.Node("Expand", {"half", "k4"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  ExpectTensor<float>(**loaded, {Row({{0, 1}})}, {1}, {.5f});
  for (float sum : {2000.f, 1e5f, 1e9f, -1.f, kNan, 1e38f}) {
    const auto answer = AnswerOf(**loaded, {Row({{0, sum}})});
    if (answer.ok()) continue;  // -1 to the fourth power is 1
    EXPECT_TRUE(absl::IsResourceExhausted(answer.status()) ||
                absl::IsInvalidArgument(answer.status()))
        << answer.status();
    EXPECT_LT(answer.status().message().size(), 1000u);
  }
  OnnxBuilder wait;
  wait.Input("x", {1, kRowSize}).Node("Cast", {"x"}, {"sizes"}, {Int("to", 7)}).Integers("f", {-1});
  wait.Node("Reshape", {"sizes", "f"}, {"shape"}).Node("ConstantOfShape", {"shape"}, {"y"});
  wait.Output("y");
  EXPECT_THAT(AnswerOf(wait, {Row({})}),
              StatusIs(absl::StatusCode::kResourceExhausted, "supported are 1024 elements"));
}

TEST(CutTest, ScattersByIndicesThatAreComputed) {
  OnnxBuilder model;
  model.Input("x", {1, kRowSize})
      .Node("NonZero", {"x"}, {"at"})
      .Node("Transpose", {"at"}, {"rows"});
  model.Node("GatherND", {"x", "rows"}, {"found"}).Node("Neg", {"found"}, {"turned"});
  model.Node("ScatterND", {"x", "rows", "turned"}, {"n"});
  model.Node("ArgMax", {"x"}, {"best"}, {Int("axis", 1)}).Floats("nine", {1, 1}, {9});
  model.Node("ScatterElements", {"n", "best", "nine"}, {"e"}, {Int("axis", 1)});
  model.Node("Relu", {"e"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, (Dims{1, kRowSize}));
  std::vector<float> expected(kRowSize, 0);
  expected[3] = 2, expected[7] = 9;
  ExpectTensor<float>(**loaded, {Row({{3, -2}, {7, 4}, {8, 1}})}, {1, kRowSize}, expected);
}

// Also beyond what f32 counts.
TEST(CutTest, ScatteredIntegersKeepTheirType) {
  OnnxBuilder model;
  model.Input("x", {kRowSize}, TensorProto::INT64).Input("y", {1, kRowSize});
  model.Node("ArgMax", {"y"}, {"best"}, {Int("axis", 1), Int("keepdims", 0)});
  model.Node("Gather", {"x", "best"}, {"found"}).Node("Neg", {"found"}, {"turned"});
  model.Node("ScatterElements", {"x", "best", "turned"}, {"z"}).Output("z", TensorProto::INT64);
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, (Dims{kRowSize}));
  constexpr int64_t kWide = (int64_t{1} << 40) + 1;
  std::vector<int64_t> numbers(kRowSize, kWide);
  const Given x = {{kRowSize}, Bytes(numbers)};
  numbers[7] = -kWide;
  ExpectTensor<int64_t>(**loaded, {x, Row({{7, 4}})}, {kRowSize}, numbers);
}

TEST(CutTest, WhatIsNotSupportedAfterACutIsRefusedAtLoad) {
  OnnxBuilder model;
  model.Input("x", {1, kRowSize})
      .Node("NonZero", {"x"}, {"at"})
      .Node("Transpose", {"at"}, {"rows"});
  model.Node("GatherND", {"x", "rows"}, {"found"});
  model.Node("ScatterND", {"x", "rows", "found"}, {"y"}, {String("reduction", "mean")}).Output("y");
  EXPECT_THAT(Load(model).status(), StatusIs(absl::StatusCode::kInvalidArgument, "node_y"));
}

// The two greatest elements are added to the greatest one, whose place is computed.
TEST(CutTest, UpdatesOfComputedPlacesAreAdded) {
  OnnxBuilder model(18);
  model.Input("x", {1, kRowSize});
  model.Node("ArgMax", {"x"}, {"best"}, {Int("axis", 1)})
      .Node("Concat", {"best", "best"}, {"at"}, {Int("axis", 1)});
  model.Node("TopK", {"x", "two"}, {"most", "places"}).Integers("two", {2});
  model.Node("ScatterElements", {"x", "at", "most"}, {"y"},
             {Int("axis", 1), String("reduction", "add")});
  const auto loaded = Load(model.Output("y"));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::vector<float> expected(kRowSize, 0);
  expected[3] = 4;
  expected[6] = 5 + 5 + 4;
  ExpectTensor<float>(**loaded, {Row({{3, 4}, {6, 5}})}, {1, kRowSize}, expected);
}

TEST(CutTest, TheExplanationHasAllStages) {
  OnnxBuilder model;
  model.Input("x", {1, kRowSize}).Integers("rows", {-1, 2});
  model.Node("Relu", {"x"}, {"r"}).Node("NonZero", {"r"}, {"at"});
  model.Node("Reshape", {"at", "rows"}, {"pairs"});
  model.Node("Cast", {"pairs"}, {"p"}, {Int("to", 1)}).Node("Tanh", {"p"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto plan = (*loaded)->Explain({.runs = 1});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> rows;
  for (const PlanStep& step : plan->steps) rows.push_back(step.node);
  EXPECT_THAT(rows, ::testing::IsSupersetOf(
                        {"input x", "node_r", "node_at", "stage 2", "node_y", "output y"}));
}

TEST(CutTest, TheExplanationSaysWhyAStageIsMissing) {
  OnnxBuilder model;
  model.Input("x", {1, kRowSize}).Integers("rows", {7, 11});
  model.Node("Relu", {"x"}, {"r"}).Node("NonZero", {"r"}, {"at"});
  model.Node("Reshape", {"at", "rows"}, {"pairs"});
  model.Node("Cast", {"pairs"}, {"y"}, {Int("to", 1)}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto plan = (*loaded)->Explain({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->steps.back().implementation, "stage/unknown");
  EXPECT_THAT(plan->steps.back().remark, ::testing::HasSubstr("node_pairs"));
}

TEST(CutTest, TheSameBitsWhateverRunsBesides) {
  OnnxBuilder model;
  model.Input("x", {-1, kRowSize}).Floats("w", {8, 8}).Integers("eight", {-1, 8});
  model.Node("NonZero", {"x"}, {"at"}).Node("Transpose", {"at"}, {"rows"});
  model.Node("GatherND", {"x", "rows"}, {"found"}).Node("Reshape", {"found", "eight"}, {"tiles"});
  model.Node("MatMul", {"tiles", "w"}, {"p"}).Node("Tanh", {"p"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto request = [](int rows) {
    std::vector<float> x(kRowSize, 0);
    for (int i = 0; i < 8 * rows; ++i) x[3 * i] = 0.25f + static_cast<float>(i % 13);
    return Numbers({1, kRowSize}, x);
  };
  const auto longest = AnswerOf(**loaded, {request(60)});
  ASSERT_TRUE(longest.ok()) << longest.status();
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int rows = 1; rows <= 40; ++rows) {
        const int mine = rows + 5 * caller;
        const auto answer = AnswerOf(**loaded, {request(mine)});
        ASSERT_TRUE(answer.ok()) << answer.status();
        ASSERT_EQ(answer->dims, (Dims{mine, 8}));
        EXPECT_EQ(std::memcmp(answer->bytes.data(), longest->bytes.data(), answer->bytes.size()), 0)
            << mine;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace tilewire::testing
