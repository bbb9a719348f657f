// SPDX-License-Identifier: Apache-2.0
//
// The quantised operators: what they become, what they refuse, and what passes make of the usual
// forms of quantised networks.
#include <gmock/gmock.h>

#include <cmath>
#include <random>

#include "engine/graph/passes/passes.h"
#include "tests/engine/graph/fixture.h"
#include "tests/support/oracle/interpreter.h"

namespace tilewire::graph {
namespace {

using ::testing::AllOf;
using testing::Elements;
using ::testing::HasSubstr;
using testing::Int;
using testing::Interpret;
using testing::Ints;
using testing::OnnxBuilder;

// Scales and zero points of the tests: "s" 0.5, "z" 128 and "z0" 0 as u8, "zs" 0 as s8.
OnnxBuilder QuantizedModel() {
  OnnxBuilder model;
  model.Floats("s", {}, {0.5f}).Floats("s3", {3}, {0.5f, 0.25f, 2.0f});
  model.Bytes("z", {}, false, {128}).Bytes("z0", {}, false, {0}).Bytes("zs", {}, true, {0});
  model.Bytes("z3", {3}, true, {0, 0, 0});
  return model;
}

// Weights "w" as s8, one scale per output, dequantised to "wr".
void AddWeights(OnnxBuilder* model, const std::vector<int64_t>& dims) {
  model->Bytes("w", dims, true).Floats("ws", {dims[0]}, std::vector<float>(dims[0], 0.25f));
  model->Bytes("wz", {dims[0]}, true, std::vector<int>(dims[0], 0));
  model->Node("DequantizeLinear", {"w", "ws", "wz"}, {"wr"}, {Int("axis", 0)});
}

OnnxBuilder& AddPair(OnnxBuilder* model, const std::string& src, const std::string& dst,
                     const std::string& scale, const std::string& zero) {
  return model->Node("QuantizeLinear", {src, scale, zero}, {dst + ".q"})
      .Node("DequantizeLinear", {dst + ".q", scale, zero}, {dst});
}

TEST(QuantizationTest, TypesFollowTheZeroPoint) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {2, 3}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("QuantizeLinear", {"x", "s3", "z3"}, {"p"}).Node("QuantizeLinear", {"x", "s"}, {"r"});
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"}).Node("Cast", {"p"}, {"c"}, {Int("to", 1)});
  model.Node("Cast", {"r"}, {"d"}, {Int("to", 1)}).Output("y").Output("c").Output("d");
  EXPECT_EQ(BuiltText(model, {{2, 3}}),
            "input x [2,3]\nq u8 [2,3] = quantize(x) 0.5@128\n"
            "p s8 [2,3] = quantize(x) 0.5@0,... axis=1\nr u8 [2,3] = quantize(x) 0.5@0\n"
            "y [2,3] = dequantize(q) 0.5@128\nc [2,3] = dequantize(p) 1@0\n"
            "d [2,3] = dequantize(r) 1@0\noutput y\noutput c\noutput d\n");
}

TEST(QuantizationTest, WhatMovesIntegersKeepsThemAndWhatComputesRefusesThem) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 4, 4}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("MaxPool", {"q"}, {"m"}, {Ints("kernel_shape", {2, 2})});
  model.Node("Flatten", {"m"}, {"f"}).Output("f");
  EXPECT_EQ(BuiltText(model, {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\nq u8 [1,2,4,4] = quantize(x) 0.5@128\n"
            "m u8 [1,2,3,3] = max_pooling(q) kernel=[2,2]\nf u8 [1,18] = reshape(m)\n"
            "f [1,18] = dequantize(f) 1@0\noutput f\n");
  model.Node("Add", {"q", "q"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{1, 2, 4, 4}}), HasSubstr("UNIMPLEMENTED: node 'node_y'"));
}

TEST(QuantizationTest, ConvolutionBetweenPairsReadsAndWritesIntegers) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 5, 5});
  AddPair(&model, "x", "a", "s", "z0");
  AddWeights(&model, {3, 2, 3, 3});
  model.Floats("b", {3}).Node("Conv", {"a", "wr", "b"}, {"c"}, {Ints("pads", {1, 1, 1, 1})});
  model.Node("Relu", {"c"}, {"r"});
  AddPair(&model, "r", "y", "s", "z0").Output("y");
  EXPECT_EQ(AfterPasses(model, {{1, 2, 5, 5}}),
            "input x [1,2,5,5]\na.q u8 [1,2,5,5] = quantize(x) 0.5@0\n"
            "y.q u8 [1,3,5,5] = convolution(a.q) wr[3,2,3,3] scaled bias pads=[1,1],[1,1] from "
            "0.5@0 + relu(0,0) to 0.5@0\ny [1,3,5,5] = dequantize(y.q) 0.5@0\noutput y\n");
}

TEST(QuantizationTest, PaddingOfIntegersThatAreNotCenteredIsWrittenOut) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 5, 5});
  AddPair(&model, "x", "a", "s", "z");
  AddWeights(&model, {3, 2, 3, 3});
  model.Node("Conv", {"a", "wr"}, {"y"}, {Ints("pads", {0, 1, 2, 1})}).Output("y");
  EXPECT_THAT(
      AfterPasses(model, {{1, 2, 5, 5}}),
      HasSubstr("u8 [1,2,7,7] = select(a.q) 2:0 x5+fill(128) x2 3:fill(128) x1+0 x5+fill(128) x1\n"
                "y [1,3,5,5] = convolution(a.q/padded/node_y) wr[3,2,3,3] scaled from 0.5@128\n"));
}

TEST(QuantizationTest, PoolingAndReshapesBetweenPairsRunOnIntegers) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 4, 4});
  AddPair(&model, "x", "a", "s", "z");
  model.Node("MaxPool", {"a"}, {"m"}, {Ints("kernel_shape", {2, 2})});
  AddPair(&model, "m", "b", "s", "z");
  model.Node("Flatten", {"b"}, {"f"}).Bytes("w", {18, 3}, true).Floats("ws", {}, {0.125f});
  model.Node("DequantizeLinear", {"w", "ws"}, {"wr"}).Node("MatMul", {"f", "wr"}, {"y"});
  EXPECT_EQ(AfterPasses(model.Output("y"), {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\na.q u8 [1,2,4,4] = quantize(x) 0.5@128\n"
            "m/integers u8 [1,2,3,3] = max_pooling(a.q) kernel=[2,2]\n"
            "y [1,3] = inner_product(m/integers) wr^T[3,18] transposed scaled from 0.5@128\n"
            "output y\n");
}

TEST(QuantizationTest, SumOfIntegersFusesWhereTypesAgree) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 3, 5, 5}).Floats("t", {}, {0.25f});
  AddPair(&model, "x", "a", "s", "z");
  AddWeights(&model, {3, 3, 1, 1});
  model.Node("Conv", {"a", "wr"}, {"c"}).Node("Add", {"c", "a"}, {"d"}).Node("Relu", {"d"}, {"r"});
  AddPair(&model, "r", "y", "t", "z0").Output("y");
  EXPECT_THAT(AfterPasses(model, {{1, 3, 5, 5}}),
              HasSubstr("y.q u8 [1,3,5,5] = convolution(a.q) wr[3,3,1,1] scaled from 0.5@128 + "
                        "sum(a.q) from 0.5@128 + relu(0,0) to 0.25@0\n"));
  model.graph().mutable_node()->Mutable(6)->set_input(2, "zs");
  model.graph().mutable_node()->Mutable(7)->set_input(2, "zs");
  EXPECT_THAT(AfterPasses(model, {{1, 3, 5, 5}}), HasSubstr("y.q s8 [1,3,5,5] = quantize("));
}

TEST(QuantizationTest, SumsBetweenPairsAreOneStep) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 3, 5, 5}).Floats("t", {}, {0.25f});
  AddPair(&model, "x", "a", "s", "z");
  AddPair(&model, "x", "b", "t", "zs");
  model.Node("Add", {"a", "b"}, {"c"}).Node("Relu", {"c"}, {"r"});
  AddPair(&model, "r", "y", "s", "z0").Output("y");
  EXPECT_EQ(AfterPasses(model, {{1, 3, 5, 5}}),
            "input x [1,3,5,5]\na.q u8 [1,3,5,5] = quantize(x) 0.5@128\n"
            "b.q s8 [1,3,5,5] = quantize(x) 0.25@0\n"
            "y.q u8 [1,3,5,5] = integer_sum(a.q, b.q) from 0.5@128, 0.25@0 + relu to 0.5@0\n"
            "y [1,3,5,5] = dequantize(y.q) 0.5@0\noutput y\n");
  model.Output("c");
  EXPECT_THAT(AfterPasses(model, {{1, 3, 5, 5}}), HasSubstr("y.q u8 [1,3,5,5] = quantize(r)"));
}

TEST(QuantizationTest, ConcatenationsOfSeveralGridsMoveIntegers) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 3, 5, 5}).Floats("t", {}, {0.25f});
  AddPair(&model, "x", "a", "s", "z");
  AddPair(&model, "x", "b", "t", "z0");
  model.Node("Concat", {"a", "b", "x"}, {"c"}, {Int("axis", 1)});
  AddPair(&model, "c", "y", "t", "z0").Output("y");
  EXPECT_EQ(AfterPasses(model, {{1, 3, 5, 5}}),
            "input x [1,3,5,5]\na.q u8 [1,3,5,5] = quantize(x) 0.5@128\n"
            "b.q u8 [1,3,5,5] = quantize(x) 0.25@0\n"
            "a/node_y.q u8 [1,3,5,5] = integer_sum(a.q) from 0.5@128 to 0.25@0\n"
            "y.q u8 [1,9,5,5] = concat(a/node_y.q, b.q, b.q) axis=1\n"
            "y [1,9,5,5] = dequantize(y.q) 0.25@0\noutput y\n");
  model.Output("c");
  EXPECT_THAT(AfterPasses(model, {{1, 3, 5, 5}}), HasSubstr("y.q u8 [1,9,5,5] = quantize(c)"));
}

TEST(QuantizationTest, ReluAndQuantizeGoBeforeAConcatenation) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 3, 5, 5}).Floats("t", {}, {0.25f}).Floats("w", {4, 3, 1, 1});
  AddPair(&model, "x", "a", "s", "z");
  model.Node("Conv", {"x", "w"}, {"v"});
  model.Node("Concat", {"a", "v"}, {"c"}, {Int("axis", 1)}).Node("Relu", {"c"}, {"r"});
  AddPair(&model, "r", "y", "t", "z0").Output("y");
  EXPECT_THAT(AfterPasses(model, {{1, 3, 5, 5}}),
              AllOf(HasSubstr(" u8 [1,3,5,5] = integer_sum(a.q) from 0.5@128 + relu to 0.25@0\n"),
                    HasSubstr(" [1,4,5,5] = convolution(x) w[4,3,1,1] + relu(0,0)\n"),
                    HasSubstr("y.q u8 [1,7,5,5] = concat(")));
}

TEST(QuantizationTest, WeightsThatAreNotS8StayReal) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 5, 5});
  AddPair(&model, "x", "a", "s", "z");
  model.Bytes("w", {3, 2, 1, 1}, false).Node("DequantizeLinear", {"w", "s", "z0"}, {"wr"});
  model.Node("Conv", {"a", "wr"}, {"y"}).Output("y");
  const std::string text = AfterPasses(model, {{1, 2, 5, 5}});
  EXPECT_THAT(text, HasSubstr("convolution(a) wr[3,2,1,1]\n"));
  model.graph().mutable_node()->Mutable(2)->set_input(2, "z");  // centered: s8 less 128
  EXPECT_THAT(AfterPasses(model, {{1, 2, 5, 5}}), HasSubstr("wr[3,2,1,1] scaled from 0.5@128\n"));
}

TEST(QuantizationTest, IntegerOperatorsAreConvolutionsOfIntegers) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 5, 5}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Bytes("w", {3, 2, 1, 1}, true).Node("ConvInteger", {"q", "w", "z"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(model, {{1, 2, 5, 5}}),
              HasSubstr("y [1,3,5,5] = convolution(q) y/weights[3,2,1,1] scaled from 1@128\n"));
  OnnxBuilder conv = QuantizedModel();
  conv.Input("x", {1, 2, 5, 5}).Node("QuantizeLinear", {"x", "s", "z0"}, {"q"});
  conv.Bytes("w", {3, 2, 1, 1}, true).Tensor("b", {3}, onnx::TensorProto::INT32)->add_int32_data(1);
  conv.graph().mutable_initializer()->rbegin()->mutable_int32_data()->Resize(3, 7);
  conv.Node("QLinearConv", {"q", "s", "z0", "w", "s3", "z3", "s", "zs", "b"}, {"p"});
  conv.Node("DequantizeLinear", {"p", "s", "zs"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(conv, {{1, 2, 5, 5}}),
              HasSubstr("p s8 [1,3,5,5] = convolution(q) p/weights[3,2,1,1] scaled bias from 0.5@0 "
                        "to 0.5@0\n"));
}

TEST(QuantizationTest, ComputedGridsAreArithmetic) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Bytes("w", {3, 4}, true).Node("MatMulInteger", {"q", "w", "z"}, {"y"}).Output("y");
  const absl::StatusOr<Network> network = Built(model, {{2, 3}});
  ASSERT_TRUE(network.ok()) << network.status();
  // The range is -1 to 4: steps of 1/51, 51 of which are below 0.
  const std::vector<Elements> y = Interpret(*network, {{-1, 0, 4, 1, 2, 3}});
  const int q[] = {-51, 0, 204, 51, 102, 153};
  for (int i = 0; i < 8; ++i) {
    int want = 0;
    for (int k = 0; k < 3; ++k) {
      const int weight = ((k * 4 + i % 4) * 37 + 1) % 255 - 127;  // OnnxBuilder::Bytes()
      want += q[i / 4 * 3 + k] * weight;
    }
    EXPECT_EQ(y[0][i], want);
  }
}

TEST(QuantizationTest, RefusesWhatItCannotHold) {
  const auto message = [](const OnnxBuilder& model) { return BuiltText(model, {{1, 2, 5, 5}}); };
  OnnxBuilder zero_scale = QuantizedModel();
  zero_scale.Input("x", {1, 2, 5, 5}).Floats("o", {}, {0.0f});
  zero_scale.Node("QuantizeLinear", {"x", "o", "z"}, {"y"}).Output("y");
  EXPECT_THAT(message(zero_scale), HasSubstr("INVALID_ARGUMENT: node 'node_y'"));
  OnnxBuilder wrong_count = QuantizedModel();
  wrong_count.Input("x", {1, 2, 5, 5}).Node("QuantizeLinear", {"x", "s3", "z3"}, {"y"});
  EXPECT_THAT(message(wrong_count.Output("y")), HasSubstr("3 scales along axis 1 of [1,2,5,5]"));
  OnnxBuilder wide = QuantizedModel();
  wide.Input("x", {1, 2, 5, 5}).Tensor("wz", {}, onnx::TensorProto::INT32)->add_int32_data(0);
  wide.Node("QuantizeLinear", {"x", "s", "wz"}, {"y"}).Output("y");
  EXPECT_THAT(message(wide), HasSubstr("UNIMPLEMENTED"));
}

// Random networks of pairs keep their numbers up to a step of the last grid.
TEST(QuantizationTest, PassesKeepTheNumbers) {
  const Dims dims = {2, 3, 6, 6};
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    OnnxBuilder model = QuantizedModel();
    model.Input("x", {2, 3, 6, 6});
    AddWeights(&model, {3, 3, 3, 3});
    model.Floats("step", {}, {0.03125f});
    std::string last = "x", before = "x";
    for (int i = 0; i < 6; ++i) {
      const std::string name = "t" + std::to_string(i);
      const char* const zeros[] = {"z", "z0", "zs"};
      const std::string pair = name + "p";
      AddPair(&model, last, pair, i == 0 ? "step" : "s", zeros[random() % 3]);
      switch (random() % 5) {
        case 0:
          model.Node("MaxPool", {pair}, {name},
                     {Ints("kernel_shape", {3, 3}), Ints("pads", {1, 1, 1, 1})});
          break;
        case 1:
          model.Node("Relu", {pair}, {name});
          break;
        case 2:
          model.Node("Conv", {pair, "wr"}, {name + "c"}, {Ints("pads", {1, 1, 1, 1})});
          model.Node("Add", {name + "c", before}, {name});
          break;
        default:
          model.Node("Conv", {pair, "wr"}, {name}, {Ints("pads", {1, 1, 1, 1})});
      }
      before = pair;
      last = name;
    }
    model.Node("Sigmoid", {last}, {"y"}).Output("y");
    absl::StatusOr<Network> network = Built(model, {dims});
    ASSERT_TRUE(network.ok()) << network.status();
    Elements image(*ElementCount(dims));
    for (size_t i = 0; i < image.size(); ++i) image[i] = std::sin(static_cast<double>(i));
    const std::vector<Elements> want = Interpret(*network, {image});
    RunPasses(&*network);
    const std::vector<Elements> got = Interpret(*network, {image});
    for (size_t i = 0; i < want[0].size(); ++i)
      ASSERT_NEAR(got[0][i], want[0][i], 1e-5) << "seed " << seed << "\n"
                                               << NetworkToText(*network);
  }
}

}  // namespace
}  // namespace tilewire::graph
