// SPDX-License-Identifier: Apache-2.0
//
// Exported forms of Gelu and layer normalization, and gathers of channels, before and after their
// passes.
#include <cmath>

#include "engine/network/passes/passes.h"
#include "tests/engine/onnx/fixture.h"

namespace tilewire::reader {
namespace {

// x / sqrt(2), erf, + 1; then the order of the two products differs.
OnnxBuilder GeluGate() {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Floats("w", {3, 4}).Node("MatMul", {"x", "w"}, {"m"});
  model.Floats("root", {}, {1.41421356f}).Floats("one", {}, {1}).Floats("half", {}, {0.5f});
  model.Node("Div", {"m", "root"}, {"d"})
      .Node("Erf", {"d"}, {"e"})
      .Node("Add", {"e", "one"}, {"g"});
  return model;
}

TEST(PatternPassesTest, GeluIsOneFunctionInEveryOrderOfItsFactors) {
  OnnxBuilder last = GeluGate(), first = GeluGate(), gate = GeluGate();
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

// An image of bytes, a node that makes real numbers of it, and the mean and deviation of each
// channel.
OnnxBuilder Image(const std::vector<int64_t>& dims, const std::vector<int64_t>& channels) {
  OnnxBuilder model;
  model.Input("x", dims, onnx::TensorProto::UINT8).Floats("size", {}, {256});
  model.Floats("mean", channels, {0.5f, 0.25f, 0.75f}).Floats("deviation", channels, {0.5f, 1, 2});
  return model.Node("Cast", {"x"}, {"real"}, {Int("to", onnx::TensorProto::FLOAT)});
}

TEST(PatternPassesTest, BytesAreNormalisedInOneOperation) {
  OnnxBuilder last = Image({1, 2, 2, 3}, {3}), first = Image({1, 3, 2, 2}, {3, 1, 1});
  last.Node("Div", {"real", "size"}, {"d"}).Node("Sub", {"d", "mean"}, {"c"});
  last.Node("Transpose", {"c"}, {"t"}, {Ints("perm", {0, 3, 1, 2})});
  last.Floats("factor", {1, 3, 1, 1}, {2, 1, 0.5f}).Node("Mul", {"t", "factor"}, {"y"}).Output("y");
  EXPECT_EQ(AfterPasses(last, {{1, 2, 2, 3}}),
            "input x u8 [1,2,2,3]\n"
            "real [1,2,2,3] = scale_bytes(x) axis=3 scale=0.0078125,0.00390625,0.00195312 "
            "shift=-1,-0.25,-0.375\nt [1,3,2,2] = transpose(real) order=[0,3,1,2]\noutput t\n");
  first.Node("Sub", {"real", "mean"}, {"c"}).Node("Div", {"c", "deviation"}, {"y"}).Output("y");
  EXPECT_EQ(AfterPasses(first, {{1, 3, 2, 2}}),
            "input x u8 [1,3,2,2]\n"
            "real [1,3,2,2] = scale_bytes(x) axis=1 scale=2,1,0.5 shift=-1,-0.25,-0.375\n"
            "output real\n");
}

TEST(PatternPassesTest, BytesThatAreUsedOtherwiseStayIntegers) {
  OnnxBuilder negative = Image({1, 3, 2, 2}, {3, 1, 1}), read = negative;
  negative.Node("Sub", {"mean", "real"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(negative, {{1, 3, 2, 2}}), Not(HasSubstr("scale_bytes")));
  read.Node("Sub", {"real", "mean"}, {"c"}).Node("Mul", {"c", "real"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(read, {{1, 3, 2, 2}}), Not(HasSubstr("scale_bytes")));
}

// A unit of ShuffleNet: two parts are joined, shuffled in two groups, and split again.
TEST(PatternPassesTest, ShuffledAndSplitChannelsAreGatheredFromWhereTheyWereComputed) {
  OnnxBuilder model;
  model.Input("a", {1, 3, 2, 2}).Input("b", {1, 3, 2, 2});
  model.Integers("split", {1, 2, 3, 2, 2}).Integers("joined", {1, 6, 2, 2});
  model.Node("Concat", {"a", "b"}, {"c"}, {Int("axis", 1)}).Node("Reshape", {"c", "split"}, {"d"});
  model.Node("Transpose", {"d"}, {"e"}, {Ints("perm", {0, 2, 1, 3, 4})});
  model.Node("Reshape", {"e", "joined"}, {"s"});
  model.Node("Split", {"s"}, {"y", "z"}, {Int("axis", 1)}).Output("y").Output("z");
  absl::StatusOr<network::Network> network = Built(model, {{1, 3, 2, 2}, {1, 3, 2, 2}});
  ASSERT_TRUE(network.ok()) << network.status();
  network::FuseShuffle(&*network);
  network::RemoveDead(&*network);
  EXPECT_EQ(NetworkToText(*network),
            "input a [1,3,2,2]\ninput b [1,3,2,2]\nc [1,6,2,2] = concat(a, b) axis=1\n"
            "s [1,6,2,2] = shuffle(c) axis=1 group_size=3\n"
            "y [1,3,2,2] = select(s) 1:0 x3\nz [1,3,2,2] = select(s) 1:3 x3\n"
            "output y\noutput z\n");
  network::FuseGatherChannels(&*network);
  EXPECT_EQ(NetworkToText(*network),
            "input a [1,3,2,2]\ninput b [1,3,2,2]\n"
            "y [1,3,2,2] = gather_channels(a, b) 0:0 1:0 0:1\n"
            "z [1,3,2,2] = gather_channels(b, a) 0:1 1:2 0:2\noutput y\noutput z\n");
}

TEST(PatternPassesTest, PartsOfAConcatenationAndOfOtherAxesStay) {
  OnnxBuilder model(9);
  model.Input("a", {1, 4, 2, 2}).Node("Concat", {"a", "a"}, {"c"}, {Int("axis", 1)});
  model.Node("Slice", {"c"}, {"y"}, {Ints("axes", {1}), Ints("starts", {2}), Ints("ends", {6})});
  model.Output("y");
  EXPECT_THAT(AfterPasses(model, {{1, 4, 2, 2}}), HasSubstr("y [1,4,2,2] = select(c) 1:2 x4"));
}

TEST(PatternPassesTest, AnotherFactorIsNoGelu) {
  OnnxBuilder model = GeluGate();
  model.Node("Mul", {"x", "x"}, {"q"}).Node("Mul", {"m", "g"}, {"p"});
  model.Node("Mul", {"p", "one"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(model, {{2, 3}}), HasSubstr("erf("));
}

// Attention of [heads, queries, elements], with its queries divided and a mask of the scores.
OnnxBuilder ScoresOfHeads() {
  OnnxBuilder model;
  model.Input("q", {2, 3, 4}).Input("k", {2, 5, 4}).Input("v", {2, 5, 6}).Input("m", {3, 5});
  model.Floats("root", {}, {2});
  model.Node("Div", {"q", "root"}, {"d"})
      .Node("Transpose", {"k"}, {"t"}, {Ints("perm", {0, 2, 1})});
  return std::move(model.Node("MatMul", {"d", "t"}, {"s"}).Node("Add", {"m", "s"}, {"a"}));
}
const std::vector<Dims> kScoreDims = {{2, 3, 4}, {2, 5, 4}, {2, 5, 6}, {3, 5}};

// A softmax of `scores`, its product with v, and what both are after the passes: an operation of
// this text, which computes the same of sines.
void ExpectAttention(OnnxBuilder& model, const std::vector<Dims>& dims, const std::string& scores,
                     const std::string& text) {
  model.Node("Softmax", {scores}, {"p"}, {Int("axis", -1)}).Node("MatMul", {"p", "v"}, {"y"});
  model.Output("y");
  EXPECT_THAT(AfterPasses(model, dims), HasSubstr(text));
  absl::StatusOr<network::Network> network = Built(model, dims);
  ASSERT_TRUE(network.ok()) << network.status();
  std::vector<Elements> inputs;
  for (const Dims& one : dims) {
    inputs.emplace_back(*ElementCount(one));
    for (size_t i = 0; i < inputs.back().size(); ++i)
      inputs.back()[i] = std::sin(static_cast<double>(i + 10 * inputs.size()));
  }
  const std::vector<Elements> before = Interpret(*network, inputs);
  network::RunPasses(&*network);
  const std::vector<Elements> after = Interpret(*network, inputs);
  for (size_t i = 0; i < before.size(); ++i) ExpectNear(after[i], before[i], 1e-6);
}

TEST(PatternPassesTest, ProductsAroundASoftmaxAreAttention) {
  OnnxBuilder model = ScoresOfHeads();
  ExpectAttention(model, kScoreDims, "a", "y [2,3,6] = attention(q, t, v, m) scale=0.5\n");
}

// As Swin writes it: a bias of heads, then a mask of the windows of each image.
TEST(PatternPassesTest, AMaskOfWindowsIsOneOfAttentions) {
  const std::vector<Dims> dims = {{6, 2, 3, 4}, {6, 2, 4, 3}, {6, 2, 3, 5}};
  OnnxBuilder model;
  model.Input("q", {6, 2, 3, 4}).Input("k", {6, 2, 4, 3}).Input("v", {6, 2, 3, 5});
  model.Floats("bias", {1, 2, 3, 3}).Floats("mask", {1, 3, 1, 3, 3}).Floats("third", {}, {0.25f});
  model.Integers("split", {2, 3, 2, 3, 3}).Integers("joined", {6, 2, 3, 3});
  model.Node("MatMul", {"q", "k"}, {"s"}).Node("Mul", {"s", "third"}, {"f"});
  model.Node("Add", {"f", "bias"}, {"b"}).Node("Reshape", {"b", "split"}, {"w"});
  model.Node("Add", {"w", "mask"}, {"a"}).Node("Reshape", {"a", "joined"}, {"j"});
  ExpectAttention(model, dims, "j",
                  "y [6,2,3,5] = attention(q, k, v, b/bias, a/mask) scale=0.25\n");
}

// Products of q, k (turned) and v of any rank, with these masks between them.
using Shapes = std::vector<std::vector<int64_t>>;
OnnxBuilder AttentionOf(const Shapes& dims, const Shapes& masks) {
  OnnxBuilder model;
  model.Input("q", dims[0]).Input("k", dims[1]).Input("v", dims[2]);
  model.Node("MatMul", {"q", "k"}, {"s0"});
  for (size_t i = 0; i < masks.size(); ++i) {
    const std::string mask = absl::StrCat("m", i), sum = absl::StrCat("s", i + 1);
    model.Floats(mask, masks[i]).Node("Add", {absl::StrCat("s", i), mask}, {sum});
  }
  return model;
}

std::vector<Dims> DimsOf(const Shapes& shapes) {
  std::vector<Dims> dims;
  for (const std::vector<int64_t>& shape : shapes) dims.emplace_back(shape.begin(), shape.end());
  return dims;
}

// As MaxViT writes it: a bias of heads is added to the scores of all windows.
TEST(PatternPassesTest, AttentionOfWindowsHasAnyRank) {
  const struct {
    const char* why;
    Shapes dims, masks;
    const char* text;
  } kCases[] = {
      {"one matrix", {{3, 4}, {4, 3}, {3, 5}}, {{3, 3}}, "y [3,5] = attention(q, k, v, s1/m0)"},
      {"windows",
       {{2, 3, 2, 3, 4}, {2, 3, 2, 4, 3}, {2, 3, 2, 3, 5}},
       {{2, 3, 3}},
       "y [2,3,2,3,5] = attention(q, k, v, s1/m0)"},
      {"a mask of windows, and one of images",
       {{2, 3, 2, 3, 4}, {2, 3, 2, 4, 3}, {2, 3, 2, 3, 5}},
       {{1, 3, 1, 3, 3}, {2, 3, 1, 1, 3}},
       "y [2,3,2,3,5] = attention(q, k, v, s1/m0, s2/m1)"},
      {"padding of each image: its windows are like heads",
       {{2, 3, 2, 3, 4}, {2, 3, 2, 4, 3}, {2, 3, 2, 3, 5}},
       {{2, 1, 1, 1, 3}},
       "y [2,3,2,3,5] = attention(q, k, v, s1/m0)"},
      {"no dimension but the last two and windows",
       {{2, 3, 2, 2, 3, 4}, {2, 3, 2, 2, 4, 3}, {2, 3, 2, 2, 3, 5}},
       {{1, 1, 2, 1, 3, 3}, {1, 3}},
       "y [2,3,2,2,3,5] = attention(q, k, v, s1/m0, s2/m1)"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model = AttentionOf(c.dims, c.masks);
    ExpectAttention(model, DimsOf(c.dims), absl::StrCat("s", c.masks.size()), c.text);
  }
}

// No fold of the leading dimensions into batches and heads suits such masks.
TEST(PatternPassesTest, MasksOfScatteredDimensionsStaySums) {
  const Shapes dims = {{2, 3, 2, 3, 4}, {2, 3, 2, 4, 3}, {2, 3, 2, 3, 5}};
  OnnxBuilder apart = AttentionOf(dims, {{2, 1, 2, 3, 3}});
  ExpectAttention(apart, DimsOf(dims), "s1", "y [2,3,2,3,5] = matmul(p, v)");
  OnnxBuilder two = AttentionOf(dims, {{2, 1, 1, 3, 3}, {2, 3, 3}});
  ExpectAttention(two, DimsOf(dims), "s2", "y [2,3,2,3,5] = matmul(p, v)");
}

TEST(PatternPassesTest, ScoresThatAreReadElsewhereStay) {
  OnnxBuilder shares = ScoresOfHeads(), scores = ScoresOfHeads(), other_axis = ScoresOfHeads();
  for (OnnxBuilder* model : {&shares, &scores, &other_axis}) {
    model->Node("Softmax", {"a"}, {"p"}, {Int("axis", model == &other_axis ? 1 : -1)});
    model->Node("MatMul", {"p", "v"}, {"y"}).Output("y");
  }
  shares.Output("p");
  scores.Node("Relu", {"s"}, {"z"}).Output("z");
  for (const OnnxBuilder* model : {&shares, &scores, &other_axis}) {
    EXPECT_THAT(AfterPasses(*model, kScoreDims),
                AllOf(HasSubstr("softmax("), Not(HasSubstr("attention("))));
  }
}

// The nodes that torch writes for LayerNorm before opset 17.
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

TEST(PatternPassesTest, TheExportedFormOfLayerNormalizationIsOneOperation) {
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

TEST(PatternPassesTest, OtherQuotientsStay) {
  OnnxBuilder model = Centred("Pow");
  model.Node("Div", {"x", "d"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(model, {{2, 3, 4}}), HasSubstr("y [2,3,4] = div(x, d)"));
}

// One window per row, of all its elements or of some.
OnnxBuilder CentredByPooling(int64_t size, int64_t padding) {
  OnnxBuilder model;
  const std::vector<onnx::AttributeProto> window = {
      Ints("kernel_shape", {1, size}), Ints("strides", {1, 4}), Ints("pads", {0, padding, 0, 0})};
  model.Input("x", {1, 2, 3, 4}).Floats("epsilon", {}, {0.25f});
  model.Node("AveragePool", {"x"}, {"m"}, window).Node("Sub", {"x", "m"}, {"c"});
  model.Node("Mul", {"c", "c"}, {"s"}).Node("AveragePool", {"s"}, {"v"}, window);
  model.Node("Add", {"v", "epsilon"}, {"a"}).Node("Sqrt", {"a"}, {"d"});
  return std::move(model.Node("Div", {"c", "d"}, {"y"}).Output("y"));
}

TEST(PatternPassesTest, MeansOfPartsOfRowsAreNoLayerNormalization) {
  const std::vector<Dims> dims = {{1, 2, 3, 4}};
  EXPECT_THAT(AfterPasses(CentredByPooling(4, 0), dims), HasSubstr("= layer_normalization(x)"));
  EXPECT_THAT(AfterPasses(CentredByPooling(3, 0), dims), Not(HasSubstr("layer_normalization")));
  EXPECT_THAT(AfterPasses(CentredByPooling(4, 1), dims), Not(HasSubstr("layer_normalization")));
}

}  // namespace
}  // namespace tilewire::reader
