// SPDX-License-Identifier: Apache-2.0
//
// Sizes that a request brings as the elements of an input, or that are computed from such elements:
// the answers, that they have the bits of the same sizes in the file, and what is refused.
#include <cstring>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

Given Count(const Dims& dims) {
  std::vector<float> numbers(*ElementCount(dims));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  return {dims, Bytes(numbers)};
}

Given Integers(const std::vector<int64_t>& integers) {
  return {{static_cast<int64_t>(integers.size())}, Bytes(integers)};
}

TEST(RunTimeSizesTest, ReshapeToAGivenShape) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Input("shape", {-1}, TensorProto::INT64);
  model.Node("Reshape", {"x", "shape"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_FALSE((*loaded)->signature().inputs[0].decides_shapes);
  EXPECT_TRUE((*loaded)->signature().inputs[1].decides_shapes);
  EXPECT_TRUE((*loaded)->signature().outputs[0].any_rank);
  ExpectTensor<float>(**loaded, {Count({2, 3}), Integers({3, 2})}, {3, 2}, {0, 1, 2, 3, 4, 5});
  ExpectTensor<float>(**loaded, {Count({2, 3}), Integers({-1})}, {6}, {0, 1, 2, 3, 4, 5});
  ExpectTensor<float>(**loaded, {Count({2, 3}), Integers({1, 0, 2})}, {1, 3, 2},
                      {0, 1, 2, 3, 4, 5});
  EXPECT_THAT(AnswerOf(**loaded, {Count({2, 3}), Integers({4, 2})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "cannot view [2,3] as [4,2]"));
}

TEST(RunTimeSizesTest, EachOperatorThatReadsASize) {
  struct Row {
    const char* op;
    std::vector<std::string> inputs;  // of x [2,3], which counts from 0, and the integers a and b
    std::vector<int64_t> a, b;
    Dims dims;
    std::vector<float> expected;
  };
  const std::vector<Row> rows = {
      {"Slice", {"x", "a", "b"}, {0, 1}, {1, 3}, {1, 2}, {1, 2}},
      {"Slice", {"x", "a", "b"}, {1, 0}, {1, 3}, {0, 3}, {}},
      {"Expand", {"x", "a"}, {2, 1, 1}, {0}, {2, 2, 3}, {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}},
      {"Tile", {"x", "a"}, {1, 2}, {0}, {2, 6}, {0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}},
      {"Pad", {"x", "a"}, {0, 1, 0, -1}, {0}, {2, 3}, {0, 0, 1, 0, 3, 4}},
      {"TopK", {"x", "a"}, {2}, {0}, {2, 2}, {2, 1, 5, 4}},
      {"ReduceSum", {"x", "a"}, {1}, {0}, {2, 1}, {3, 12}},
      {"ReduceSum", {"x", "a"}, {0}, {0}, {1, 3}, {3, 5, 7}},
      {"Unsqueeze", {"x", "a"}, {0, 3}, {0}, {1, 2, 3, 1}, {0, 1, 2, 3, 4, 5}},
      {"ConstantOfShape", {"a"}, {2, 1}, {0}, {2, 1}, {0, 0}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.op);
    OnnxBuilder model;
    model.Input("x", {2, 3}).Input("a", {-1}, TensorProto::INT64);
    model.Input("b", {-1}, TensorProto::INT64).Node(row.op, row.inputs, {"y"}).Output("y");
    ExpectTensor<float>(model, {Count({2, 3}), Integers(row.a), Integers(row.b)}, row.dims,
                        row.expected);
  }
}

TEST(RunTimeSizesTest, RangeOfScalars) {
  OnnxBuilder model;
  for (const char* name : {"start", "limit", "delta"}) model.Input(name, {}, TensorProto::INT32);
  model.Node("Range", {"start", "limit", "delta"}, {"y"}).Output("y", TensorProto::INT32);
  const auto scalar = [](int32_t number) { return Given{{}, Bytes<int32_t>({number})}; };
  ExpectTensor<int32_t>(model, {scalar(3), scalar(10), scalar(3)}, {3}, {3, 6, 9});
  ExpectTensor<int32_t>(model, {scalar(3), scalar(0), scalar(-2)}, {2}, {3, 1});
  ExpectTensor<int32_t>(model, {scalar(3), scalar(3), scalar(1)}, {0}, {});
  EXPECT_THAT(AnswerOf(model, {scalar(0), scalar(3), scalar(0)}),
              StatusIs(absl::StatusCode::kInvalidArgument, "a step of 0"));
}

TEST(RunTimeSizesTest, ResizeByScalesAndBySizes) {
  OnnxBuilder scales;
  scales.Input("x", {1, 1, 1, 2}).Input("scales", {4}).Node("Resize", {"x", "", "scales"}, {"y"});
  scales.Output("y");
  ExpectTensor<float>(scales, {Count({1, 1, 1, 2}), {{4}, Bytes<float>({1, 1, 2, 2})}},
                      {1, 1, 2, 4}, {0, 0, 1, 1, 0, 0, 1, 1});
  OnnxBuilder sizes;
  sizes.Input("x", {1, 1, 1, 2}).Input("to", {2}, TensorProto::INT64);
  sizes.Integers("same", {1, 1}).Node("Concat", {"same", "to"}, {"sizes"}, {Int("axis", 0)});
  sizes.Node("Resize", {"x", "", "", "sizes"}, {"y"}, {String("mode", "linear")}).Output("y");
  ExpectTensor<float>(sizes, {Count({1, 1, 1, 2}), Integers({1, 4})}, {1, 1, 1, 4},
                      {0, 0.25f, 0.75f, 1});
  EXPECT_THAT(AnswerOf(sizes, {Count({1, 1, 1, 2}), Integers({1, 0})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "node_y"));
}

// The first `length` rows of x, doubled, where the length comes as a number of pairs.
OnnxBuilder Lengths(bool in_file) {
  OnnxBuilder model;
  model.Input("x", {-1, 16}).Floats("w", {16, 8}).Integers("zero", {0}).Integers("two", {2});
  if (in_file) {
    model.Integers("pairs", {3});
  } else {
    model.Input("pairs", {1}, TensorProto::INT64);
  }
  model.Node("Mul", {"pairs", "two"}, {"length"});
  model.Node("Slice", {"x", "zero", "length", "zero"}, {"rows"});
  model.Node("MatMul", {"rows", "w"}, {"p"}).Node("Relu", {"p"}, {"y"}).Output("y");
  return model;
}

TEST(RunTimeSizesTest, TheBitsAreThoseOfSizesInTheFile) {
  const Given x = Count({9, 16});
  const auto known = AnswerOf(Lengths(/*in_file=*/true), {x});
  const auto given = AnswerOf(Lengths(/*in_file=*/false), {x, Integers({3})});
  ASSERT_TRUE(known.ok()) << known.status();
  ASSERT_TRUE(given.ok()) << given.status();
  EXPECT_EQ(given->dims, (Dims{6, 8}));
  ASSERT_EQ(known->bytes.size(), given->bytes.size());
  EXPECT_EQ(std::memcmp(known->bytes.data(), given->bytes.data(), known->bytes.size()), 0);
}

TEST(RunTimeSizesTest, RequestsOfOtherSizesAtOnce) {
  const auto loaded = Load(Lengths(/*in_file=*/false));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Given x = Count({200, 16});
  const auto longest = AnswerOf(**loaded, {x, Integers({100})});
  ASSERT_TRUE(longest.ok()) << longest.status();
  const std::vector<float> expected = ElementsOf<float>(*longest);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&, caller] {
      for (int64_t pairs = 1; pairs <= 50; ++pairs) {
        const int64_t rows = 2 * (pairs + caller);
        ExpectTensor<float>(**loaded, {x, Integers({pairs + caller})}, {rows, 8},
                            std::vector<float>(expected.begin(), expected.begin() + rows * 8));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  int kept = 0;
  for (int64_t pairs = 0; pairs <= 100; ++pairs) {
    const std::string bytes = Integers({pairs}).bytes;
    kept += (*loaded)
                ->PlannedOperations(
                    {{{{200, 16}, Layout::kNchw, {x.bytes}}, {{1}, Layout::kNchw, {bytes}}}})
                .has_value();
  }
  EXPECT_GT(kept, 0);
  EXPECT_LE(kept, 32);
}

TEST(RunTimeSizesTest, HugeSizesAreRefused) {
  OnnxBuilder expand;
  expand.Input("x", {1}, TensorProto::UINT8).Input("shape", {-1}, TensorProto::INT64);
  expand.Node("Expand", {"x", "shape"}, {"y"}).Output("y", TensorProto::UINT8);
  const auto loaded = Load(expand);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Given one = {{1}, "x"};
  ExpectTensor<char>(**loaded, {one, Integers({2, 2})}, {2, 2}, {'x', 'x', 'x', 'x'});
  EXPECT_THAT(AnswerOf(**loaded, {one, Integers({int64_t{1} << 42})}),
              StatusIs(absl::StatusCode::kResourceExhausted, "one run may use"));
  EXPECT_THAT(AnswerOf(**loaded, {one, Integers({1 << 30})}),
              StatusIs(absl::StatusCode::kResourceExhausted, "may have 4194304 elements"));
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{int64_t{1} << 62}, std::vector<int64_t>{int64_t{1} << 32, 1 << 30},
        std::vector<int64_t>(64, 2), std::vector<int64_t>{-5}}) {
    const auto answer = AnswerOf(**loaded, {one, Integers(shape)});
    ASSERT_FALSE(answer.ok());
    EXPECT_LT(answer.status().message().size(), 1000u);
  }
  EXPECT_THAT(AnswerOf(**loaded, {one, Integers(std::vector<int64_t>(1025, 1))}),
              StatusIs(absl::StatusCode::kResourceExhausted, "may have 1024 elements"));
  OnnxBuilder fill;
  fill.Input("shape", {-1}, TensorProto::INT64).Node("ConstantOfShape", {"shape"}, {"y"});
  fill.Output("y");
  EXPECT_THAT(AnswerOf(fill, {Integers({1 << 20, 1 << 20})}),
              StatusIs(absl::StatusCode::kResourceExhausted, "node_y"));
  OnnxBuilder tile;  // of channels, which passes may look at one by one
  tile.Input("x", {3, 1}).Input("repeats", {2}, TensorProto::INT64);
  tile.Node("Tile", {"x", "repeats"}, {"y"}).Output("y");
  EXPECT_THAT(AnswerOf(tile, {Count({3, 1}), Integers({1, int64_t{1} << 40})}),
              StatusIs(absl::StatusCode::kResourceExhausted, "one run may use"));
}

TEST(RunTimeSizesTest, ARequestChoosesABranchAndCountsALoop) {
  OnnxBuilder positive, negative, body, model;
  positive.Node("Abs", {"x"}, {"t"}).Output("t");
  negative.Node("Neg", {"x"}, {"e"}).Output("e");
  body.Input("i", {}, TensorProto::INT64).Input("go", {}, TensorProto::BOOL).Input("s", {2});
  body.Node("Add", {"s", "b"}, {"next"}).Node("Identity", {"go"}, {"goes_on"});
  body.Output("goes_on", TensorProto::BOOL).Output("next");
  model.Input("x", {2}).Input("yes", {}, TensorProto::BOOL).Input("runs", {}, TensorProto::INT64);
  model.Node("If", {"yes"}, {"b"},
             {Graph("then_branch", positive), Graph("else_branch", negative)});
  model.Node("Loop", {"runs", "", "b"}, {"y"}, {Graph("body", body)}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Given x = {{2}, Bytes<float>({1, -2})};
  const auto runs = [](int64_t count) { return Given{{}, Bytes<int64_t>({count})}; };
  const Given yes = {{}, std::string(1, 1)}, no = {{}, std::string(1, 0)};
  ExpectTensor<float>(**loaded, {x, yes, runs(0)}, {2}, {1, 2});
  ExpectTensor<float>(**loaded, {x, yes, runs(3)}, {2}, {4, 8});
  ExpectTensor<float>(**loaded, {x, no, runs(1)}, {2}, {-2, 4});
  // Too often for one network: it runs.
  ExpectTensor<float>(**loaded, {x, yes, runs(30'000)}, {2}, {30'001, 60'002});
  EXPECT_THAT(AnswerOf(**loaded, {x, yes, runs(int64_t{1} << 60)}),
              StatusIs(absl::StatusCode::kResourceExhausted, "runs 1152921504606846976 times"));
}

TEST(RunTimeSizesTest, AMaskChoosesRows) {
  OnnxBuilder model;
  model.Input("x", {3, 2}).Input("keep", {-1}, TensorProto::BOOL);
  model.Node("Compress", {"x", "keep"}, {"y"}, {Int("axis", 0)}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Given x = Count({3, 2});
  ExpectTensor<float>(**loaded, {x, {{3}, {'\1', '\0', '\1'}}}, {2, 2}, {0, 1, 4, 5});
  ExpectTensor<float>(**loaded, {x, {{2}, {'\0', '\1'}}}, {1, 2}, {2, 3});
  ExpectTensor<float>(**loaded, {x, {{3}, std::string(3, '\0')}}, {0, 2}, {});
  EXPECT_THAT(AnswerOf(**loaded, {x, {{4}, std::string(4, '\1')}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "4"));
}

// The elements of a request's input may also become numbers, or weights, of the network: two
// requests must not share them.
TEST(RunTimeSizesTest, NumbersOfARequestAreItsOwn) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 4, 4}).Input("to", {2}, TensorProto::INT64).Floats("w", {2, 2, 1, 1});
  model.Integers("same", {1, 2}).Node("Concat", {"same", "to"}, {"sizes"}, {Int("axis", 0)});
  model.Node("Conv", {"x", "w"}, {"c"}).Node("Cast", {"to"}, {"f"}, {Int("to", 1)});
  model.Integers("channels", {1, 2, 1, 1}).Node("Reshape", {"f", "channels"}, {"scale"});
  model.Node("Mul", {"c", "scale"}, {"m"});
  model.Node("Resize", {"m", "", "", "sizes"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const Given x = Count({1, 2, 4, 4});
  const auto once = AnswerOf(**loaded, {x, Integers({4, 4})});
  const auto wide = AnswerOf(**loaded, {x, Integers({4, 8})});
  ASSERT_TRUE(once.ok()) << once.status();
  ASSERT_TRUE(wide.ok()) << wide.status();
  const auto few = ElementsOf<float>(*once), many = ElementsOf<float>(*wide);
  ASSERT_EQ(many.size(), 2 * few.size());
  for (size_t i = 0; i < many.size(); ++i)
    EXPECT_FLOAT_EQ(many[i], few[i / 2] * (i < many.size() / 2 ? 1 : 2)) << i;
}

// The same for numbers that are computed from the dims of inputs.
TEST(RunTimeSizesTest, NumbersOfAShapeAreItsOwn) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 2, -1}).Floats("w", {2, 2, 1, 1});
  model.Node("Shape", {"x"}, {"shape"}).Integers("three", {3});
  model.Node("Gather", {"shape", "three"}, {"width"})
      .Node("Cast", {"width"}, {"f"}, {Int("to", 1)});
  model.Node("Conv", {"x", "w"}, {"c"}).Node("Mul", {"c", "f"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (int64_t width : {1, 2, 5}) {
    const std::vector<float> ones(4 * width, 1);
    const auto answer = AnswerOf(**loaded, {{{1, 2, 2, width}, Bytes(ones)}});
    const auto other = AnswerOf(**loaded, {{{1, 2, 2, 1}, Bytes<float>({1, 1, 1, 1})}});
    ASSERT_TRUE(answer.ok()) << answer.status();
    ASSERT_TRUE(other.ok()) << other.status();
    EXPECT_FLOAT_EQ(ElementsOf<float>(*answer)[0],
                    ElementsOf<float>(*other)[0] * static_cast<float>(width));
  }
}

}  // namespace
}  // namespace tilewire::testing
