// SPDX-License-Identifier: Apache-2.0
//
// Normalizations, products of computed tensors, best elements and dilated windows: node, input
// dims, and what they become; and the exported forms of Gelu and layer normalization before and
// after their passes.
#include <gmock/gmock.h>

#include "engine/graph/passes/passes.h"
#include "tests/engine/graph/fixture.h"

namespace tilewire::graph {
namespace {

using testing::Float;
using ::testing::HasSubstr;
using testing::Int;
using testing::Ints;
using testing::OnnxBuilder;

struct RowCase {
  const char* why;
  std::string op;
  std::vector<std::string> inputs;  // of x, and those below
  std::vector<onnx::AttributeProto> attributes;
  std::vector<int64_t> x;
  const char* expected;  // the lines between the inputs and "output"
};

std::vector<RowCase> RowCases() {
  return {
      {"lrn",
       "LRN",
       {"x"},
       {Int("size", 5), Float("bias", 2)},
       {2, 4, 5, 6},
       "y [2,4,5,6] = lrn(x) size=5 (0.0001,0.75,2)\n"},
      {"layer normalization",
       "LayerNormalization",
       {"x", "row", "row"},
       {},
       {2, 3, 4},
       "y/matrix [6,4] = reshape(x)\n"
       "y/rows [6,4] = layer_normalization(y/matrix) epsilon=1e-05 scaled\n"
       "y [2,3,4] = reshape(y/rows)\n"},
      {"layer normalization of two dimensions",
       "LayerNormalization",
       {"x", "rows"},
       {Int("axis", 1), Float("epsilon", 0.5f)},
       {2, 3, 4},
       "y/matrix [2,12] = reshape(x)\n"
       "y/rows [2,12] = layer_normalization(y/matrix) epsilon=0.5 scaled\n"
       "y [2,3,4] = reshape(y/rows)\n"},
      {"product of computed matrices",
       "MatMul",
       {"x", "z"},
       {},
       {2, 3, 4},
       "y [2,3,5] = matmul(x, z)\n"},
      {"a stack against one matrix of a higher rank",
       "MatMul",
       {"x", "stack"},
       {},
       {3, 4},
       "y/left [1,3,4] = reshape(x)\n"
       "y/stack [2,4,5] = literal() elements=40\n"
       "y [2,3,5] = matmul(y/left, y/stack)\n"},
      {"a row and a column are dropped",
       "MatMul",
       {"x", "x"},
       {},
       {4},
       "y/row [1,4] = reshape(x)\ny/column [4,1] = reshape(x)\n"
       "y/product [1,1] = matmul(y/row, y/column)\ny [1] = reshape(y/product)\n"},
      {"gemm of computed matrices",
       "Gemm",
       {"x", "x", "five"},
       {Int("transB", 1), Float("alpha", 2)},
       {5, 4},
       "y/transB [4,5] = transpose(x) order=[1,0]\ny/product [5,5] = matmul(x, y/transB)\n"
       "y/alpha [5,5] = activation(y/product) linear(2,0)\n"
       "y/spatial [5,5,1] = reshape(y/alpha)\n"
       "y/scaled [5,5,1] = convolution(y/spatial) y[5,1,1] bias groups=5\n"
       "y [5,5] = reshape(y/scaled)\n"},
      {"best of a row",
       "ArgMax",
       {"x"},
       {Int("axis", -1)},
       {2, 3, 4},
       "y [2,3,1] = top_k(x) axis=2 indices\n"},
      {"last of the least",
       "ArgMin",
       {"x"},
       {Int("axis", 1), Int("keepdims", 0), Int("select_last_index", 1)},
       {2, 3, 4},
       "y/kept [2,1,4] = top_k(x) axis=1 smallest indices last\ny [2,4] = reshape(y/kept)\n"},
      {"the largest",
       "TopK",
       {"x", "two"},
       {Int("axis", 1)},
       {2, 3, 4},
       "y [2,2,4] = top_k(x) axis=1\n"},
      {"dilated maximum",
       "MaxPool",
       {"x"},
       {Ints("kernel_shape", {2, 1}), Ints("dilations", {3, 1}), Ints("pads", {1, 0, 0, 0})},
       {1, 2, 5, 4},
       "y/tap0.0 [1,2,3,4] = select(x) 2:fill(-inf) x1+0 x2\n"
       "y/tap0.1 [1,2,3,4] = select(x) 2:2 x3\n"
       "y [1,2,3,4] = max(y/tap0.0, y/tap0.1)\n"},
  };
}

TEST(RowOpsTest, Operators) {
  for (const RowCase& c : RowCases()) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model(17);
    model.Input("x", c.x).Input("z", {2, 4, 5});
    model.Floats("row", {4}).Floats("rows", {3, 4}).Floats("stack", {2, 4, 5}).Floats("five", {5});
    model.Integers("two", {2});
    model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y");
    const Dims dims(c.x.begin(), c.x.end());
    EXPECT_EQ(BuiltText(model, {dims, {2, 4, 5}}),
              "input x " + DimsToString(dims) + "\ninput z [2,4,5]\n" + c.expected + "output y\n");
  }
}

TEST(RowOpsTest, TopKGivesIndicesAsItsSecondOutput) {
  OnnxBuilder model;
  model.Input("x", {2, 9}).Integers("k", {3}).Node("TopK", {"x", "k"}, {"v", "i"});
  model.Output("i").Output("v");
  EXPECT_EQ(BuiltText(model, {{2, 9}}),
            "input x [2,9]\nv [2,3] = top_k(x) axis=1\ni [2,3] = top_k(x) axis=1 indices\n"
            "output i\noutput v\n");
}

TEST(RowOpsTest, Refusals) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const struct {
    const char* op;
    std::vector<std::string> inputs;
    std::vector<onnx::AttributeProto> attributes;
    absl::StatusCode code;
    const char* message;
  } cases[] = {
      {"MatMul", {"x", "x"}, {}, kInvalid, "does not fit B [2,3]"},
      {"Gemm", {"x", "z"}, {}, kInvalid, "does not fit B [2,2,3]"},
      {"TopK", {"x", "four"}, {}, kInvalid, "k 4 of 3"},
      {"TopK", {"x", "x"}, {}, absl::StatusCode::kUnimplemented, "input 1 is computed"},
      {"ArgMax", {"x"}, {Int("axis", 2)}, kInvalid, "axis 2"},
      {"LRN", {"z"}, {Int("size", 0)}, kInvalid, "size 0"},
      {"LayerNormalization", {"x", "two"}, {}, kInvalid, "do not fit"},
      {"MaxPool",
       {"z"},
       {Ints("kernel_shape", {2}), Ints("dilations", {4})},
       kInvalid,
       "does not fit"},
  };
  for (const auto& c : cases) {
    OnnxBuilder model(17);
    model.Input("x", {2, 3}).Input("z", {2, 2, 3}).Floats("two", {2}).Integers("four", {4});
    model.Node(c.op, c.inputs, {"y"}, c.attributes).Output("y");
    const absl::Status status = Open(model).status();
    EXPECT_EQ(status.code(), c.code) << c.op << ": " << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message)) << c.op;
  }
}

// x / sqrt(2), erf, + 1; then the order of the two products differs.
OnnxBuilder Gate() {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Floats("w", {3, 4}).Node("MatMul", {"x", "w"}, {"m"});
  model.Floats("root", {}, {1.41421356f}).Floats("one", {}, {1}).Floats("half", {}, {0.5f});
  model.Node("Div", {"m", "root"}, {"d"})
      .Node("Erf", {"d"}, {"e"})
      .Node("Add", {"e", "one"}, {"g"});
  return model;
}

TEST(RowPassesTest, GeluIsOneFunctionInEveryOrderOfItsFactors) {
  OnnxBuilder last = Gate(), first = Gate(), gate = Gate();
  last.Node("Mul", {"m", "g"}, {"p"}).Node("Mul", {"p", "half"}, {"y"}).Output("y");
  first.Node("Mul", {"m", "half"}, {"p"}).Node("Mul", {"p", "g"}, {"y"}).Output("y");
  gate.Node("Mul", {"g", "half"}, {"p"}).Node("Mul", {"p", "m"}, {"y"}).Output("y");
  EXPECT_EQ(BuiltText(last, {{2, 3}}),
            "input x [2,3]\nm [2,4] = inner_product(x) w^T[4,3] transposed\n"
            "d [2,4] = activation(m) linear(0.707107,0)\ne [2,4] = erf(d)\n"
            "g [2,4] = activation(e) linear(1,1)\np [2,4] = mul(m, g)\n"
            "y [2,4] = activation(p) linear(0.5,0)\noutput y\n");
  for (const OnnxBuilder* model : {&last, &first, &gate}) {
    EXPECT_EQ(AfterPasses(*model, {{2, 3}}),
              "input x [2,3]\ny [2,4] = inner_product(x) w^T[4,3] transposed + gelu_erf(0,0)\n"
              "output y\n");
  }
}

// A unit of ShuffleNet: two parts are joined, shuffled in two groups, and split again.
TEST(RowPassesTest, ShuffledAndSplitChannelsAreGatheredFromWhereTheyWereComputed) {
  OnnxBuilder model;
  model.Input("a", {1, 3, 2, 2}).Input("b", {1, 3, 2, 2});
  model.Integers("split", {1, 2, 3, 2, 2}).Integers("joined", {1, 6, 2, 2});
  model.Node("Concat", {"a", "b"}, {"c"}, {Int("axis", 1)}).Node("Reshape", {"c", "split"}, {"d"});
  model.Node("Transpose", {"d"}, {"e"}, {Ints("perm", {0, 2, 1, 3, 4})});
  model.Node("Reshape", {"e", "joined"}, {"s"});
  model.Node("Split", {"s"}, {"y", "z"}, {Int("axis", 1)}).Output("y").Output("z");
  absl::StatusOr<Network> network = Built(model, {{1, 3, 2, 2}, {1, 3, 2, 2}});
  ASSERT_TRUE(network.ok()) << network.status();
  FuseShuffle(&*network);
  RemoveDead(&*network);
  EXPECT_EQ(NetworkToText(*network),
            "input a [1,3,2,2]\ninput b [1,3,2,2]\nc [1,6,2,2] = concat(a, b) axis=1\n"
            "s [1,6,2,2] = shuffle(c) axis=1 group_size=3\n"
            "y [1,3,2,2] = select(s) 1:0 x3\nz [1,3,2,2] = select(s) 1:3 x3\n"
            "output y\noutput z\n");
  FuseGatherChannels(&*network);
  EXPECT_EQ(NetworkToText(*network),
            "input a [1,3,2,2]\ninput b [1,3,2,2]\n"
            "y [1,3,2,2] = gather_channels(a, b) 0:0 1:0 0:1\n"
            "z [1,3,2,2] = gather_channels(b, a) 0:1 1:2 0:2\noutput y\noutput z\n");
}

TEST(RowPassesTest, PartsOfAConcatenationAndOfOtherAxesStay) {
  OnnxBuilder model(9);
  model.Input("a", {1, 4, 2, 2}).Node("Concat", {"a", "a"}, {"c"}, {Int("axis", 1)});
  model.Node("Slice", {"c"}, {"y"}, {Ints("axes", {1}), Ints("starts", {2}), Ints("ends", {6})});
  model.Output("y");
  EXPECT_THAT(AfterPasses(model, {{1, 4, 2, 2}}), HasSubstr("y [1,4,2,2] = select(c) 1:2 x4"));
}

TEST(RowPassesTest, AnotherFactorIsNoGelu) {
  OnnxBuilder model = Gate();
  model.Node("Mul", {"x", "x"}, {"q"}).Node("Mul", {"m", "g"}, {"p"});
  model.Node("Mul", {"p", "one"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(model, {{2, 3}}), HasSubstr("erf("));
}

// What torch writes for LayerNorm before opset 17.
OnnxBuilder Centred(const std::string& square) {
  OnnxBuilder model;
  model.Input("x", {2, 3, 4}).Floats("scale", {4}).Floats("shift", {4});
  model.Floats("two", {}, {2}).Floats("epsilon", {}, {0.25f});
  model.Node("ReduceMean", {"x"}, {"m"}, {Ints("axes", {-1})}).Node("Sub", {"x", "m"}, {"c"});
  model.Node(square, {"c", square == "Pow" ? "two" : "c"}, {"s"});
  model.Node("ReduceMean", {"s"}, {"v"}, {Ints("axes", {-1})});
  model.Node("Add", {"v", "epsilon"}, {"a"}).Node("Sqrt", {"a"}, {"d"});
  return std::move(model.Node("Div", {"c", "d"}, {"n"}));
}

TEST(RowPassesTest, TheExportedFormOfLayerNormalizationIsOneOperation) {
  for (const char* square : {"Pow", "Mul"}) {
    OnnxBuilder model = Centred(square);
    model.Node("Mul", {"n", "scale"}, {"p"}).Node("Add", {"p", "shift"}, {"y"}).Output("y");
    EXPECT_EQ(
        AfterPasses(model, {{2, 3, 4}}),
        "input x [2,3,4]\ny [2,3,4] = layer_normalization(x) epsilon=0.25 scaled\noutput y\n");
    OnnxBuilder bare = Centred(square).Output("n");
    EXPECT_EQ(AfterPasses(bare, {{2, 3, 4}}),
              "input x [2,3,4]\nn [2,3,4] = layer_normalization(x) epsilon=0.25\noutput n\n");
  }
}

TEST(RowPassesTest, OtherQuotientsStay) {
  OnnxBuilder model = Centred("Pow");
  model.Node("Div", {"x", "d"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(model, {{2, 3, 4}}), HasSubstr("y [2,3,4] = div(x, d)"));
}

}  // namespace
}  // namespace tilewire::graph
