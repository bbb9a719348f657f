// SPDX-License-Identifier: Apache-2.0
//
// Each pass on a graph that needs it, before and after, and on one that must stay as it is.
#include "engine/network/passes/passes.h"

#include "absl/strings/match.h"
#include "tests/engine/onnx/fixture.h"

namespace tilewire::reader {

using network::FusePooling;
using network::FusePostOps;
using network::Network;
using network::RunPasses;
namespace {

std::string After(const OnnxBuilder& model, void (*pass)(Network*), const std::vector<Dims>& dims) {
  absl::StatusOr<Network> network = Built(model, dims);
  if (!network.ok()) return network.status().ToString();
  pass(&*network);
  network::RemoveDead(&*network);
  return NetworkToText(*network);
}

void AddBatchNorm(OnnxBuilder* model, const std::string& name, const std::string& src,
                  int64_t channels) {
  model->Floats(name + ".gamma", {channels})
      .Floats(name + ".beta", {channels})
      .Floats(name + ".mean", {channels});
  model->Floats(name + ".var", {channels}, std::vector<float>(channels, 0.75f));
  model->Node("BatchNormalization",
              {src, name + ".gamma", name + ".beta", name + ".mean", name + ".var"}, {name});
}

TEST(PassesTest, BatchNormFoldsIntoTheConvolutionBefore) {
  OnnxBuilder model;
  model.Input("x", {1, 3, 4, 4}).Floats("w", {2, 3, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  AddBatchNorm(&model, "n", "c", 2);
  model.Output("n");
  EXPECT_EQ(BuiltText(model, {{1, 3, 4, 4}}),
            "input x [1,3,4,4]\nc [1,2,4,4] = convolution(x) w[2,3,1,1]\n"
            "n [1,2,4,4] = convolution(c) n[2,1,1,1] bias groups=2\noutput n\n");
  EXPECT_EQ(After(model, network::FoldScaleShift, {{1, 3, 4, 4}}),
            "input x [1,3,4,4]\nc [1,2,4,4] = convolution(x) w*n[2,3,1,1] scaled bias\noutput c\n");
}

TEST(PassesTest, BatchNormFoldsThroughTheReshapesOfAMatrix) {
  OnnxBuilder model;
  model.Input("x", {1, 3}).Floats("w", {3, 2}).Node("MatMul", {"x", "w"}, {"c"});
  AddBatchNorm(&model, "n", "c", 2);
  AddBatchNorm(&model, "m", "n", 2);
  model.Output("m");
  EXPECT_EQ(
      After(model, RunPasses, {{1, 3}}),
      "input x [1,3]\nc [1,2] = inner_product(x) w^T*n*m[2,3] transposed scaled bias\noutput c\n");
}

TEST(PassesTest, BatchNormOfAResultWithAnotherUseStays) {
  OnnxBuilder model;
  model.Input("x", {1, 3, 4, 4}).Floats("w", {2, 3, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  AddBatchNorm(&model, "n", "c", 2);
  model.Output("n").Output("c");
  EXPECT_THAT(After(model, network::FoldScaleShift, {{1, 3, 4, 4}}),
              HasSubstr("n [1,2,4,4] = convolution(c) n[2,1,1,1] bias"));
}

// Shared weights under two batch norms are two different packed weights.
TEST(PassesTest, KeysOfSharedWeightsDiffer) {
  OnnxBuilder model;
  model.Input("x", {1, 3, 4, 4}).Floats("w", {2, 3, 1, 1});
  model.Node("Conv", {"x", "w"}, {"c"}).Node("Conv", {"x", "w"}, {"d"});
  AddBatchNorm(&model, "n", "c", 2);
  AddBatchNorm(&model, "m", "d", 2);
  model.Output("n").Output("m");
  const std::string text = After(model, RunPasses, {{1, 3, 4, 4}});
  EXPECT_THAT(text, HasSubstr("w*n[2,3,1,1]"));
  EXPECT_THAT(text, HasSubstr("w*m[2,3,1,1]"));
}

TEST(PassesTest, ResidualSumAndReluFuse) {
  OnnxBuilder model;
  model.Input("x", {1, 3, 4, 4}).Floats("w", {3, 3, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  model.Node("Add", {"c", "x"}, {"s"}).Node("Relu", {"s"}, {"y"}).Output("y");
  EXPECT_EQ(After(model, FusePostOps, {{1, 3, 4, 4}}),
            "input x [1,3,4,4]\ny [1,3,4,4] = convolution(x) w[3,3,1,1] + sum(x) + "
            "relu(0,0)\noutput y\n");
}

// The convolution that could take the sum runs before its addend is there: it moves behind.
TEST(PassesTest, FusedOperationRunsAfterItsAddend) {
  OnnxBuilder model;
  model.Input("x", {1, 3, 4, 4}).Floats("w", {3, 3, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  model.Node("MaxPool", {"x"}, {"p"}, {Ints("kernel_shape", {1, 1})})
      .Node("Add", {"c", "p"}, {"y"})
      .Output("y");
  EXPECT_EQ(After(model, FusePostOps, {{1, 3, 4, 4}}),
            "input x [1,3,4,4]\np [1,3,4,4] = max_pooling(x) kernel=[1,1]\n"
            "y [1,3,4,4] = convolution(x) w[3,3,1,1] + sum(p)\noutput y\n");
}

TEST(PassesTest, NothingFusesThatIsUsedTwice) {
  OnnxBuilder model;
  model.Input("x", {1, 3, 4, 4}).Floats("w", {3, 3, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  model.Node("Add", {"c", "c"}, {"s"}).Node("Relu", {"c"}, {"r"}).Output("s").Output("r");
  EXPECT_EQ(After(model, FusePostOps, {{1, 3, 4, 4}}), BuiltText(model, {{1, 3, 4, 4}}));
}

TEST(PassesTest, OneSumAndFourStepsAtMost) {
  OnnxBuilder model;
  model.Input("x", {1, 3, 4, 4}).Floats("w", {3, 3, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  model.Node("Add", {"c", "x"}, {"s"}).Node("Add", {"s", "x"}, {"t"}).Output("t");
  EXPECT_THAT(After(model, FusePostOps, {{1, 3, 4, 4}}), HasSubstr("t [1,3,4,4] = sum(s, x)"));
  OnnxBuilder chain;
  chain.Input("x", {1, 3, 4, 4}).Floats("w", {3, 3, 1, 1}).Node("Conv", {"x", "w"}, {"0"});
  for (int i = 0; i < 5; ++i) chain.Node("Tanh", {std::to_string(i)}, {std::to_string(i + 1)});
  EXPECT_THAT(After(chain.Output("5"), FusePostOps, {{1, 3, 4, 4}}),
              HasSubstr("5 [1,3,4,4] = activation(4) tanh(0,0)"));
}

// PRelu with these slopes after a convolution of four channels, and what the passes make of it.
std::string SlopedText(const std::vector<int64_t>& slopes) {
  OnnxBuilder model;
  model.Input("x", {1, 3, 5, 5}).Floats("w", {4, 3, 3, 3}).Floats("s", slopes);
  model.Node("Conv", {"x", "w"}, {"c"}).Node("PRelu", {"c", "s"}, {"p"});
  model.Node("Relu", {"p"}, {"r"}).Node("PRelu", {"r", "s"}, {"y"}).Output("y");
  return After(model, FusePostOps, {{1, 3, 5, 5}});
}

TEST(PassesTest, OnePReluWithASlopePerChannelFuses) {
  for (const std::vector<int64_t>& slopes : {std::vector<int64_t>{4, 1, 1}, {1, 4, 1, 1}}) {
    const std::string text = SlopedText(slopes);
    EXPECT_THAT(text,
                HasSubstr("r [1,4,3,3] = convolution(x) w[4,3,3,3] + prelu[4] + relu(0,0)\n"));
    EXPECT_THAT(text, HasSubstr("y [1,4,3,3] = prelu(r, "));
  }
  EXPECT_THAT(SlopedText({1}), HasSubstr("y [1,4,3,3] = convolution(x) w[4,3,3,3] + relu("));
  EXPECT_THAT(SlopedText({3}), HasSubstr("p [1,4,3,3] = prelu(c, "));
  EXPECT_THAT(SlopedText({4, 3, 3}), HasSubstr("p [1,4,3,3] = prelu(c, "));
}

// x, a convolution of it, and what follows up to y.
OnnxBuilder Convolved(const std::vector<int64_t>& dims) {
  OnnxBuilder model;
  model.Input("x", dims).Floats("w", {4, dims[1], 3, 3}).Node("Conv", {"x", "w"}, {"c"});
  return model;
}

TEST(PassesTest, MaxPoolingFusesBehindTheActivation) {
  OnnxBuilder model = Convolved({1, 3, 9, 8});
  model.Node("Relu", {"c"}, {"r"})
      .Node("MaxPool", {"r"}, {"y"}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})})
      .Output("y");
  const auto passes = [](Network* network) {
    FusePostOps(network);
    FusePooling(network);
  };
  EXPECT_EQ(After(model, FusePostOps, {{1, 3, 9, 8}}),
            "input x [1,3,9,8]\nr [1,4,7,6] = convolution(x) w[4,3,3,3] + relu(0,0)\n"
            "y [1,4,3,3] = max_pooling(r) kernel=[2,2] strides=[2,2]\noutput y\n");
  EXPECT_EQ(After(model, passes, {{1, 3, 9, 8}}),
            "input x [1,3,9,8]\ny [1,4,3,3] = convolution(x) w[4,3,3,3] + relu(0,0) + "
            "max_pooling(2,2)\noutput y\n");
}

TEST(PassesTest, NothingFollowsAFusedMaxPooling) {
  OnnxBuilder model = Convolved({1, 3, 10, 10});
  for (const auto& [src, dst] : {std::pair("c", "p"), std::pair("p", "q")})
    model.Node("MaxPool", {src}, {dst}, {Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})});
  model.Node("Relu", {"q"}, {"y"}).Output("y");
  EXPECT_EQ(After(model, RunPasses, {{1, 3, 10, 10}}),
            "input x [1,3,10,10]\np [1,4,4,4] = convolution(x) w[4,3,3,3] + max_pooling(2,2)\n"
            "q [1,4,2,2] = max_pooling(p) kernel=[2,2] strides=[2,2]\n"
            "y [1,4,2,2] = activation(q) relu(0,0)\noutput y\n");
}

// Rounded up, an even size gives the same windows as rounded down, an odd one does not.
TEST(PassesTest, OtherPoolingsBehindAConvolutionStay) {
  struct Case {
    const char* why;
    std::vector<onnx::AttributeProto> attributes;
    bool fuses = false;
  };
  const auto two = Ints("kernel_shape", {2, 2}), step = Ints("strides", {2, 2});
  const Case cases[] = {
      {"as it should be", {two, step}, true},
      {"rounded up", {two, step, Int("ceil_mode", 1)}},
      {"stride 1", {two}},
      {"a larger window", {Ints("kernel_shape", {3, 3}), step}},
      {"padded on the left", {two, step, Ints("pads", {1, 0, 0, 0})}},
      {"padded on the right", {two, step, Ints("pads", {0, 0, 1, 1})}},
      {"dilated", {two, step, Ints("dilations", {2, 2})}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.why);
    OnnxBuilder model = Convolved({1, 3, 9, 9});
    model.Node("MaxPool", {"c"}, {"y"}, one.attributes).Output("y");
    const bool fused = absl::StrContains(After(model, FusePooling, {{1, 3, 9, 9}}), " + max_");
    EXPECT_EQ(fused, one.fuses);
  }
  OnnxBuilder even = Convolved({1, 3, 10, 8});
  even.Node("MaxPool", {"c"}, {"y"}, {two, step, Int("ceil_mode", 1)}).Output("y");
  EXPECT_THAT(After(even, FusePooling, {{1, 3, 10, 8}}), HasSubstr(" + max_pooling"));
}

TEST(PassesTest, MaxPoolingOfAResultWithAnotherUseOrASumStays) {
  const auto two = Ints("kernel_shape", {2, 2}), step = Ints("strides", {2, 2});
  OnnxBuilder used = Convolved({1, 3, 10, 10});
  used.Node("MaxPool", {"c"}, {"y"}, {two, step}).Output("y").Output("c");
  EXPECT_THAT(After(used, RunPasses, {{1, 3, 10, 10}}), HasSubstr("= max_pooling(c)"));
  OnnxBuilder summed = Convolved({1, 3, 10, 10});
  summed.Floats("v", {4, 3, 3, 3}).Node("Conv", {"x", "v"}, {"d"});
  summed.Node("Add", {"c", "d"}, {"s"}).Node("MaxPool", {"s"}, {"y"}, {two, step}).Output("y");
  EXPECT_THAT(After(summed, RunPasses, {{1, 3, 10, 10}}), HasSubstr("= max_pooling(s)"));
}

// ShuffleNet's channel_shuffle(groups = 2) of 6 channels: group_size is 6 / 2, not 2.
TEST(PassesTest, ChannelShuffle) {
  OnnxBuilder model;
  model.Input("x", {1, 6, 4, 4})
      .Integers("split", {1, 2, 3, 4, 4})
      .Integers("joined", {1, 6, 4, 4});
  model.Node("Reshape", {"x", "split"}, {"a"})
      .Node("Transpose", {"a"}, {"b"}, {Ints("perm", {0, 2, 1, 3, 4})});
  model.Node("Reshape", {"b", "joined"}, {"y"}).Output("y");
  EXPECT_EQ(After(model, network::FuseShuffle, {{1, 6, 4, 4}}),
            "input x [1,6,4,4]\ny [1,6,4,4] = shuffle(x) axis=1 group_size=3\noutput y\n");
}

TEST(PassesTest, OtherTransposesAreNoShuffle) {
  OnnxBuilder model;
  model.Input("x", {1, 6, 4, 4})
      .Integers("split", {1, 2, 3, 4, 4})
      .Integers("joined", {1, 6, 4, 4});
  model.Node("Reshape", {"x", "split"}, {"a"})
      .Node("Transpose", {"a"}, {"b"}, {Ints("perm", {0, 1, 2, 4, 3})});
  model.Node("Reshape", {"b", "joined"}, {"y"}).Output("y");
  EXPECT_THAT(After(model, network::FuseShuffle, {{1, 6, 4, 4}}), Not(HasSubstr("shuffle")));
}

// A linear layer of every row, with a bias and an activation after the reshape to the rows' dims.
OnnxBuilder LinearOfRows(const std::vector<int64_t>& x) {
  OnnxBuilder model;
  model.Input("x", x).Floats("w", {x.back(), 5}).Floats("b", {5});
  model.Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"b", "p"}, {"s"});
  model.Node("Relu", {"s"}, {"r"});
  return model;
}

TEST(PassesTest, BiasAndActivationFuseThroughReshapesOfRows) {
  OnnxBuilder model = LinearOfRows({2, 3, 4});
  EXPECT_EQ(After(model.Output("r"), RunPasses, {{2, 3, 4}}),
            "input x [2,3,4]\np/rows [6,4] = reshape(x)\n"
            "p/product [6,5] = inner_product(p/rows) w^T[5,4] transposed bias + relu(0,0)\n"
            "p [2,3,5] = reshape(p/product)\noutput p\n");
}

TEST(PassesTest, SumsThatAreNoBiasOfOutputsStay) {
  OnnxBuilder twice = LinearOfRows({2, 3, 4});
  EXPECT_THAT(After(twice.Output("p").Output("r"), RunPasses, {{2, 3, 4}}), HasSubstr("add("));
  OnnxBuilder model;
  model.Input("x", {2, 5, 4}).Floats("w", {4, 5}).Floats("b", {5, 1});
  model.Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"p", "b"}, {"y"}).Output("y");
  EXPECT_THAT(After(model, network::FuseBias, {{2, 5, 4}}),
              HasSubstr("y [2,5,5] = convolution(p)"));
}

// The end of ConvNeXt's block: two layers with the channels last, then the channels to the front.
TEST(PassesTest, LinearLayersOfPixelsAreConvolutionsBehindTheTranspose) {
  OnnxBuilder model = LinearOfRows({2, 3, 4, 6});
  model.Floats("v", {5, 7}).Node("MatMul", {"r", "v"}, {"q"});
  model.Node("Transpose", {"q"}, {"t"}, {Ints("perm", {0, 3, 1, 2})});
  EXPECT_EQ(After(model.Output("t"), RunPasses, {{2, 3, 4, 6}}),
            "input x [2,3,4,6]\np/rows [2,6,3,4] = transpose(x) order=[0,3,1,2]\n"
            "r [2,5,3,4] = convolution(p/rows) w^T[5,6,1,1] transposed bias + relu(0,0)\n"
            "q/product [2,7,3,4] = convolution(r) v^T[7,5,1,1] transposed\noutput q/product\n");
}

TEST(PassesTest, TransposesAroundLinearLayersOfPixelsDisappear) {
  OnnxBuilder model;
  model.Input("x", {2, 6, 8}).Floats("w", {6, 5});
  model.Node("Transpose", {"x"}, {"a"}, {Ints("perm", {0, 2, 1})})
      .Node("MatMul", {"a", "w"}, {"p"});
  model.Node("Transpose", {"p"}, {"y"}, {Ints("perm", {0, 2, 1})}).Output("y");
  EXPECT_EQ(After(model, RunPasses, {{2, 6, 8}}),
            "input x [2,6,8]\np/product [2,5,8] = convolution(x) w^T[5,6,1] transposed\n"
            "output p/product\n");
}

TEST(PassesTest, RowsThatAreReadElsewhereStayRows) {
  OnnxBuilder model = LinearOfRows({2, 3, 4, 6});
  model.Node("Transpose", {"r"}, {"t"}, {Ints("perm", {0, 3, 1, 2})}).Output("t").Output("r");
  EXPECT_THAT(After(model, network::ConvolveRows, {{2, 3, 4, 6}}), Not(HasSubstr("convolution")));
}

TEST(PassesTest, FlattenFoldsIntoTheInnerProduct) {
  OnnxBuilder model;
  model.Input("x", {2, 3, 2, 2})
      .Floats("w", {5, 12})
      .Floats("b", {5})
      .Node("Flatten", {"x"}, {"f"});
  model.Node("Gemm", {"f", "w", "b"}, {"y"}, {Int("transB", 1)}).Output("y");
  EXPECT_EQ(After(model, network::FoldFlatten, {{2, 3, 2, 2}}),
            "input x [2,3,2,2]\ny [2,5] = inner_product(x) w[5,12] bias\noutput y\n");
}

TEST(PassesTest, ConcatenationsThatBeginAlikeLieInEachOther) {
  OnnxBuilder model;
  model.Input("x", {1, 2, 3, 3}).Input("y", {1, 1, 3, 3}).Input("z", {1, 3, 3, 3});
  model.Node("Concat", {"x", "y"}, {"a"}, {Int("axis", 1)}).Output("a");
  model.Node("Concat", {"x", "y", "z"}, {"b"}, {Int("axis", 1)}).Output("b");
  model.Node("Concat", {"y", "x"}, {"c"}, {Int("axis", 1)}).Output("c");
  model.Node("Concat", {"x", "y", "z", "x"}, {"d"}, {Int("axis", 1)}).Output("d");
  EXPECT_EQ(After(model, network::NestConcats, {{1, 2, 3, 3}, {1, 1, 3, 3}, {1, 3, 3, 3}}),
            "input x [1,2,3,3]\ninput y [1,1,3,3]\ninput z [1,3,3,3]\n"
            "a [1,3,3,3] = concat(x, y) axis=1\nb [1,6,3,3] = concat(a, z) axis=1\n"
            "c [1,3,3,3] = concat(y, x) axis=1\nd [1,8,3,3] = concat(b, x) axis=1\n"
            "output a\noutput b\noutput c\noutput d\n");
}

TEST(PassesTest, PadFoldsIntoConvolutionsAndPoolings) {
  OnnxBuilder model(10);
  model.Input("x", {1, 2, 4, 4}).Floats("w", {2, 2, 3, 3});
  model.Node("Pad", {"x"}, {"p"}, {Ints("pads", {0, 0, 1, 0, 0, 0, 1, 2})});
  model.Node("Conv", {"p", "w"}, {"c"}, {Ints("pads", {0, 1, 0, 0})}).Output("c");
  model.Node("AveragePool", {"p"}, {"a"}, {Ints("kernel_shape", {3, 3})}).Output("a");
  model.Node("MaxPool", {"p"}, {"m"}, {Ints("kernel_shape", {3, 3})}).Output("m");
  EXPECT_EQ(After(model, network::FoldPad, {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\n"
            "p [1,2,6,6] = select(x) 2:fill(0) x1+0 x4+fill(0) x1 3:0 x4+fill(0) x2\n"
            "c [1,2,4,5] = convolution(x) w[2,2,3,3] pads=[1,1],[1,2]\n"
            "a [1,2,4,4] = avg_include_padding(x) kernel=[3,3] pads=[1,0],[1,2]\n"
            "m [1,2,4,4] = max_pooling(p) kernel=[3,3]\noutput c\noutput a\noutput m\n");
}

TEST(PassesTest, SwishIsOneFunction) {
  OnnxBuilder model(14);
  model.Input("x", {1, 2, 4, 4}).Floats("w", {2, 2, 1, 1}).Node("Conv", {"x", "w"}, {"c"});
  model.Node("HardSigmoid", {"c"}, {"g"}).Node("Mul", {"c", "g"}, {"s"});
  model.Node("Sigmoid", {"s"}, {"h"}).Node("Mul", {"h", "s"}, {"y"}).Output("y");
  EXPECT_EQ(After(model, network::FuseSwish, {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\nc [1,2,4,4] = convolution(x) w[2,2,1,1]\n"
            "s [1,2,4,4] = activation(c) hard_swish(0.2,0.5)\n"
            "y [1,2,4,4] = activation(s) swish(1,0)\noutput y\n");
  EXPECT_EQ(After(model, RunPasses, {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\ny [1,2,4,4] = convolution(x) w[2,2,1,1] + hard_swish(0.2,0.5) + "
            "swish(1,0)\noutput y\n");
}

// min(max(`x` + 3, 0), 6) / 6 as `gate`.
void AddSpelledHardSigmoid(OnnxBuilder* model, const std::string& x, const std::string& gate) {
  model->Node("Add", {x, "3"}, {gate + "/sum"});
  model->Node("Clip", {gate + "/sum", "0", "6"}, {gate + "/bounded"});
  model->Node("Div", {gate + "/bounded", "6"}, {gate});
}

OnnxBuilder WithBounds(const std::vector<int64_t>& dims) {
  OnnxBuilder model;
  model.Input("x", dims).Floats("0", {}, {0}).Floats("3", {}, {3}).Floats("6", {}, {6});
  return model;
}

TEST(PassesTest, SpelledHardSigmoidAndHardSwishAreOneFunctionEach) {
  OnnxBuilder model = WithBounds({1, 2, 4, 4});
  AddSpelledHardSigmoid(&model, "x", "g");
  model.Node("Mul", {"x", "g"}, {"s"});
  model.Node("Add", {"s", "3"}, {"t"}).Node("Clip", {"t", "0", "6"}, {"u"});
  model.Node("Mul", {"s", "u"}, {"v"}).Node("Div", {"v", "6"}, {"y"}).Output("y").Output("g");
  EXPECT_EQ(After(model, network::FuseHardSigmoid, {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\n"
            "g [1,2,4,4] = activation(x) hard_sigmoid(0.166667,0.5)\n"
            "s [1,2,4,4] = mul(x, g)\n"
            "y [1,2,4,4] = activation(s) hard_swish(0.166667,0.5)\noutput y\noutput g\n");
}

TEST(PassesTest, BoundsThatAreNoHardSigmoidStay) {
  OnnxBuilder model = WithBounds({1, 2, 4, 4});
  model.Node("Add", {"x", "3"}, {"t"}).Node("Clip", {"t", "0", "6"}, {"u"});
  model.Node("Div", {"u", "3"}, {"y"}).Output("y");  // reaches 2
  EXPECT_EQ(After(model, network::FuseHardSigmoid, {{1, 2, 4, 4}}),
            BuiltText(model, {{1, 2, 4, 4}}));
}

// Pooling, two convolutions that do their functions themselves, one product.
TEST(PassesTest, SqueezeAndExciteIsFourSteps) {
  OnnxBuilder model = WithBounds({1, 4, 6, 6});
  model.Floats("v", {2, 4, 1, 1}).Floats("w", {4, 2, 1, 1});
  model.Node("GlobalAveragePool", {"x"}, {"p"}).Node("Conv", {"p", "v"}, {"c"});
  model.Node("Relu", {"c"}, {"r"}).Node("Conv", {"r", "w"}, {"d"});
  AddSpelledHardSigmoid(&model, "d", "g");
  model.Node("Mul", {"x", "g"}, {"y"}).Output("y");
  EXPECT_EQ(After(model, RunPasses, {{1, 4, 6, 6}}),
            "input x [1,4,6,6]\np [1,4,1,1] = avg_exclude_padding(x) kernel=[6,6]\n"
            "r [1,2,1,1] = convolution(p) v[2,4,1,1] + relu(0,0)\n"
            "g [1,4,1,1] = convolution(r) w[4,2,1,1] + hard_sigmoid(0.166667,0.5)\n"
            "y [1,4,6,6] = mul(x, g)\noutput y\n");
}

OnnxBuilder SqueezeAndExciteOfProducts() {
  OnnxBuilder model;
  model.Input("x", {1, 4, 6, 6})
      .Floats("v", {2, 4})
      .Floats("w", {4, 2})
      .Integers("1", {1, 4, 1, 1});
  model.Node("GlobalAveragePool", {"x"}, {"p"}).Node("Flatten", {"p"}, {"f"});
  model.Node("Gemm", {"f", "v"}, {"c"}, {Int("transB", 1)}).Node("Relu", {"c"}, {"r"});
  model.Node("Gemm", {"r", "w"}, {"d"}, {Int("transB", 1)}).Node("Sigmoid", {"d"}, {"s"});
  model.Node("Reshape", {"s", "1"}, {"g"}).Node("Mul", {"x", "g"}, {"y"}).Output("y");
  return model;
}

TEST(PassesTest, SqueezeAndExciteOfProductsIsTheSameFourSteps) {
  const OnnxBuilder model = SqueezeAndExciteOfProducts();
  EXPECT_EQ(BuiltText(model, {{1, 4, 6, 6}}),
            "input x [1,4,6,6]\np [1,4,1,1] = avg_exclude_padding(x) kernel=[6,6]\n"
            "f [1,4] = reshape(p)\nc [1,2] = inner_product(f) v[2,4]\n"
            "r [1,2] = activation(c) relu(0,0)\nd [1,4] = inner_product(r) w[4,2]\n"
            "s [1,4] = activation(d) logistic(0,0)\ng [1,4,1,1] = reshape(s)\n"
            "y [1,4,6,6] = mul(x, g)\noutput y\n");
  EXPECT_EQ(After(model, RunPasses, {{1, 4, 6, 6}}),
            "input x [1,4,6,6]\np [1,4,1,1] = avg_exclude_padding(x) kernel=[6,6]\n"
            "r [1,2,1,1] = convolution(p) v[2,4,1,1] + relu(0,0)\n"
            "s [1,4,1,1] = convolution(r) w[4,2,1,1] + logistic(0,0)\n"
            "y [1,4,6,6] = mul(x, s)\noutput y\n");
}

TEST(PassesTest, ProductsThatAreReadElsewhereStay) {
  OnnxBuilder model = SqueezeAndExciteOfProducts();
  model.Output("s");
  EXPECT_THAT(After(model, RunPasses, {{1, 4, 6, 6}}), HasSubstr("s [1,4] = inner_product(r)"));
}

TEST(PassesTest, ReshapesCollapse) {
  OnnxBuilder model;
  model.Input("x", {2, 12}).Integers("a", {2, 3, 4}).Integers("b", {24}).Integers("c", {2, 12});
  model.Node("Reshape", {"x", "a"}, {"1"})
      .Node("Reshape", {"1", "b"}, {"2"})
      .Node("Reshape", {"2", "c"}, {"3"});
  model.Output("3").Output("2");
  EXPECT_EQ(After(model, network::CollapseReshapes, {{2, 12}}),
            "input x [2,12]\n2 [24] = reshape(x)\noutput x\noutput 2\n");
}

TEST(PassesTest, IdentityDropoutAndDeadNodesLeaveNothing) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("Identity", {"x"}, {"a"}).Node("Dropout", {"a"}, {"b", "mask"});
  model.Node("Exp", {"b"}, {"dead"}).Node("Tanh", {"dead"}, {"deader"}).Output("b");
  EXPECT_EQ(After(model, RunPasses, {{2, 3}}), "input x [2,3]\noutput x\n");
}

}  // namespace
}  // namespace tilewire::reader
