// SPDX-License-Identifier: Apache-2.0
//
// Tensors without elements, from the request to the answer: what ONNX and numpy make of them.
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// A node of opset 18 on x [-1,-1], an open batch and open columns.
OnnxBuilder Reduction(const std::string& op, int64_t axis) {
  OnnxBuilder model(18);
  model.Input("x", {-1, -1}).Integers("axes", {axis});
  model.Node(op, {"x", "axes"}, {"y"}).Output("y");
  return model;
}

TEST(EmptyTensorsTest, ReductionsOfNothing) {
  const std::pair<const char*, float> rows[] = {
      {"ReduceSum", 0},         {"ReduceSumSquare", 0},      {"ReduceL1", 0},
      {"ReduceL2", 0},          {"ReduceProd", 1},           {"ReduceMax", -kInfinity},
      {"ReduceMin", kInfinity}, {"ReduceLogSum", -kInfinity}};
  for (const auto& [op, expected] : rows) {
    SCOPED_TRACE(op);
    ExpectTensor<float>(Reduction(op, 1), {{{2, 0}, ""}}, {2, 1}, {expected, expected});
    ExpectTensor<float>(Reduction(op, 0), {{{2, 0}, ""}}, {1, 0}, {});
    ExpectTensor<float>(Reduction(op, 1), {{{0, 3}, ""}}, {0, 1}, {});
  }
  EXPECT_THAT(AnswerOf(Reduction("ReduceMean", 1), {{{2, 0}, ""}}),
              StatusIs(absl::StatusCode::kInvalidArgument, "without elements"));
}

TEST(EmptyTensorsTest, ConcatLeavesThemOut) {
  OnnxBuilder model;
  model.Input("a", {-1, 2}).Input("b", {-1, 2}).Input("c", {-1, 2});
  model.Node("Concat", {"a", "b", "c"}, {"y"}, {Int("axis", 0)}).Output("y");
  const Given none = {{0, 2}, ""};
  const Given one = {{1, 2}, Bytes<float>({1, 2})}, two = {{2, 2}, Bytes<float>({3, 4, 5, 6})};
  ExpectTensor<float>(model, {none, one, two}, {3, 2}, {1, 2, 3, 4, 5, 6});
  ExpectTensor<float>(model, {one, none, two}, {3, 2}, {1, 2, 3, 4, 5, 6});
  ExpectTensor<float>(model, {none, two, none}, {2, 2}, {3, 4, 5, 6});
  ExpectTensor<float>(model, {none, none, none}, {0, 2}, {});
}

TEST(EmptyTensorsTest, AKnownPartOfAConcatMayBeEmpty) {
  OnnxBuilder model;
  model.Input("x", {2}, TensorProto::INT64).Integers("none", {});
  model.Node("Concat", {"none", "x", "none"}, {"y"}, {Int("axis", 0)});
  model.Output("y", TensorProto::INT64);
  ExpectTensor<int64_t>(model, {{{2}, Bytes<int64_t>({7, -8})}}, {2}, {7, -8});
}

TEST(EmptyTensorsTest, SliceToNothingKeepsTheType) {
  for (auto [onnx, width] : {std::pair(TensorProto::FLOAT, 4), std::pair(TensorProto::UINT8, 1),
                             std::pair(TensorProto::INT64, 8), std::pair(TensorProto::BOOL, 1),
                             std::pair(TensorProto::FLOAT16, 2)}) {
    OnnxBuilder model;
    model.Input("x", {3, 2}, onnx).Integers("starts", {2}).Integers("ends", {2});
    model.Node("Slice", {"x", "starts", "ends"}, {"s"}).Node("Identity", {"s"}, {"y"});
    model.Output("y", onnx);
    ExpectTensor<char>(model, {{{3, 2}, std::string(6 * width, '\0')}}, {0, 2}, {});
  }
}

TEST(EmptyTensorsTest, ElementwiseBroadcastsOneToNothing) {
  OnnxBuilder model;
  model.Input("x", {-1, 3}).Input("z", {-1, 3});
  model.Node("Add", {"x", "z"}, {"s"}).Node("Relu", {"s"}, {"y"}).Output("y");
  ExpectTensor<float>(model, {{{0, 3}, ""}, {{1, 3}, Bytes<float>({1, 2, 3})}}, {0, 3}, {});
  EXPECT_THAT(AnswerOf(model, {{{0, 3}, ""}, {{2, 3}, std::string(24, '\0')}}),
              StatusIs(absl::StatusCode::kInvalidArgument, ""));
}

TEST(EmptyTensorsTest, CastsReshapesAndTransposes) {
  OnnxBuilder model;
  model.Input("x", {-1, 4}, TensorProto::INT32).Integers("shape", {0, 2, 2});
  model.Node("Cast", {"x"}, {"c"}, {Int("to", TensorProto::INT64)});
  model.Node("Reshape", {"c", "shape"}, {"r"}).Node("Transpose", {"r"}, {"y"});
  model.Output("y", TensorProto::INT64);
  ExpectTensor<int64_t>(model, {{{0, 4}, ""}}, {2, 2, 0}, {});
  ExpectTensor<int64_t>(model, {{{1, 4}, Bytes<int32_t>({1, 2, 3, 4})}}, {2, 2, 1}, {1, 3, 2, 4});
}

TEST(EmptyTensorsTest, ProductsOverNothingAreZeroAndTheBiasStays) {
  OnnxBuilder product;
  product.Input("a", {-1, -1}).Input("b", {-1, -1});
  product.Node("MatMul", {"a", "b"}, {"y"}).Output("y");
  ExpectTensor<float>(product, {{{2, 0}, ""}, {{0, 3}, ""}}, {2, 3}, {0, 0, 0, 0, 0, 0});
  ExpectTensor<float>(product, {{{0, 2}, ""}, {{2, 3}, std::string(24, '\0')}}, {0, 3}, {});
  OnnxBuilder layer;
  layer.Input("x", {-1, 2}).Floats("w", {2, 3}).Floats("b", {3}, {1, 2, 3});
  layer.Node("Gemm", {"x", "w", "b"}, {"y"}).Output("y");
  ExpectTensor<float>(layer, {{{0, 2}, ""}}, {0, 3}, {});
}

TEST(EmptyTensorsTest, PadsAroundNothing) {
  OnnxBuilder model;
  model.Input("x", {-1, 2}).Integers("pads", {1, 0, 1, 0}).Floats("five", {1}, {5});
  model.Node("Pad", {"x", "pads", "five"}, {"y"}).Output("y");
  ExpectTensor<float>(model, {{{0, 2}, ""}}, {2, 2}, {5, 5, 5, 5});
}

TEST(EmptyTensorsTest, ABatchOfNoImages) {
  OnnxBuilder model;
  model.Input("x", {-1, 3, 8, 8}).Floats("w", {4, 3, 3, 3});
  model.Node("Conv", {"x", "w"}, {"c"}, {Ints("pads", {1, 1, 1, 1})}).Node("Relu", {"c"}, {"r"});
  model.Node("MaxPool", {"r"}, {"p"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  model.Node("GlobalAveragePool", {"p"}, {"g"}).Node("Flatten", {"g"}, {"f"});
  model.Node("Softmax", {"f"}, {"y"}).Output("y");
  ExpectTensor<float>(model, {{{0, 3, 8, 8}, ""}}, {0, 4}, {});
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto nhwc = (*loaded)->Run({{{0, 3, 8, 8}, Layout::kNhwc, {}}}, {}, {});
  ASSERT_TRUE(nhwc.ok()) << nhwc.status();
  EXPECT_EQ((*nhwc)[0].dims, (Dims{0, 4}));
}

TEST(EmptyTensorsTest, HugeDimsBesideAZeroAreRefused) {
  OnnxBuilder model(14);
  model.Input("x", {-1, -1, -1}).Node("Trilu", {"x"}, {"y"}).Output("y");
  ExpectTensor<float>(model, {{{0, 2, 3}, ""}}, {0, 2, 3}, {});
  for (const int64_t huge : {int64_t{1} << 25, int64_t{1} << 62}) {
    EXPECT_THAT(AnswerOf(model, {{{0, huge, 1}, ""}}),
                StatusIs(absl::StatusCode::kInvalidArgument, ""));
  }
}

TEST(EmptyTensorsTest, ShapesOfNothing) {
  OnnxBuilder model;
  model.Input("x", {-1, 3}).Node("Shape", {"x"}, {"y"}).Output("y", TensorProto::INT64);
  ExpectTensor<int64_t>(model, {{{0, 3}, ""}}, {2}, {0, 3});
}

}  // namespace
}  // namespace tilewire::testing
