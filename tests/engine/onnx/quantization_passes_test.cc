// SPDX-License-Identifier: Apache-2.0
//
// The passes on the usual forms of quantised networks.
#include <cmath>
#include <random>

#include "engine/network/passes/passes.h"
#include "tests/engine/onnx/quantized_model.h"

namespace tilewire::reader {
namespace {

TEST(QuantizationPassesTest, ConvolutionBetweenPairsReadsAndWritesIntegers) {
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

TEST(QuantizationPassesTest, PaddingOfIntegersThatAreNotCenteredIsWrittenOut) {
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

TEST(QuantizationPassesTest, PoolingAndReshapesBetweenPairsRunOnIntegers) {
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

TEST(QuantizationPassesTest, SumOfIntegersFusesWhereTypesAgree) {
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

TEST(QuantizationPassesTest, SumsBetweenPairsAreOneStep) {
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

TEST(QuantizationPassesTest, ConcatenationsOfSeveralGridsMoveIntegers) {
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

TEST(QuantizationPassesTest, ReluAndQuantizeGoBeforeAConcatenation) {
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

TEST(QuantizationPassesTest, WeightsThatAreNotS8StayReal) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 5, 5});
  AddPair(&model, "x", "a", "s", "z");
  model.Bytes("w", {3, 2, 1, 1}, false).Node("DequantizeLinear", {"w", "s", "z0"}, {"wr"});
  model.Node("Conv", {"a", "wr"}, {"y"}).Output("y");
  const std::string text = AfterPasses(model, {{1, 2, 5, 5}});
  EXPECT_THAT(text, HasSubstr("convolution(a) wr[3,2,1,1] scaled\n"));
  model.graph().mutable_node()->Mutable(2)->set_input(2, "z");  // centered: s8 less 128
  EXPECT_THAT(AfterPasses(model, {{1, 2, 5, 5}}), HasSubstr("wr[3,2,1,1] scaled from 0.5@128\n"));
}

TEST(QuantizationPassesTest, ProductsOfComputedMatricesReadAndWriteIntegers) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 5, 4}).Input("m", {5, 3});
  AddPair(&model, "x", "a", "s", "z");
  AddPair(&model, "m", "b", "s", "zs");
  model.Node("Transpose", {"a"}, {"t"}, {Ints("perm", {0, 1, 3, 2})});
  model.Node("MatMul", {"t", "b"}, {"c"});
  AddPair(&model, "c", "y", "s", "z0").Output("y");
  EXPECT_EQ(
      AfterPasses(model, {{1, 2, 5, 4}, {5, 3}}),
      "input x [1,2,5,4]\ninput m [5,3]\na.q u8 [1,2,5,4] = quantize(x) 0.5@128\n"
      "b.q s8 [5,3] = quantize(m) 0.5@0\n"
      "t/integers u8 [1,2,4,5] = transpose(a.q) order=[0,1,3,2]\n"
      "c/right/integers s8 [1,1,5,3] = reshape(b.q)\n"
      "y.q u8 [1,2,4,3] = integer_matmul(t/integers, c/right/integers) from 0.5@128, 0.5@0 to "
      "0.5@0\ny [1,2,4,3] = dequantize(y.q) 0.5@0\noutput y\n");
  model.Output("c");
  EXPECT_THAT(AfterPasses(model, {{1, 2, 5, 4}, {5, 3}}),
              HasSubstr("c [1,2,4,3] = integer_matmul(t/integers, c/right/integers) from 0.5@128, "
                        "0.5@0\ny.q u8 [1,2,4,3] = quantize(c)"));
}

TEST(QuantizationPassesTest, FactorsOfProductsAndOfDequantizedNumbersBecomeScales) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 4, 3}).Input("m", {1, 3, 5});
  model.Floats("f", {}, {0.25f}).Floats("g", {}, {0.125f}).Floats("n", {}, {-2.0f});
  AddPair(&model, "x", "a", "s", "z");
  AddPair(&model, "m", "b", "s", "z");
  model.Node("MatMul", {"a", "b"}, {"c"}).Node("Mul", {"c", "f"}, {"d"});
  AddPair(&model, "d", "e", "s", "z");
  model.Node("Mul", {"e", "f"}, {"h"});
  AddPair(&model, "h", "y", "g", "z");
  model.Node("Mul", {"y", "n"}, {"w"}).Output("w");
  EXPECT_EQ(AfterPasses(model, {{1, 4, 3}, {1, 3, 5}}),
            "input x [1,4,3]\ninput m [1,3,5]\na.q u8 [1,4,3] = quantize(x) 0.5@128\n"
            "b.q u8 [1,3,5] = quantize(m) 0.5@128\n"
            "e.q u8 [1,4,5] = integer_matmul(a.q, b.q) from 0.125@128, 0.5@128 to 0.5@128\n"
            "y [1,4,5] = dequantize(e.q) 0.125@128\n"
            "w [1,4,5] = activation(y) linear(-2,0)\noutput w\n");
}

TEST(QuantizationPassesTest, ProductsWithRealNumbersOrOfTooManyBytesStayReal) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {2, 3}).Input("m", {3, 4});
  AddPair(&model, "x", "a", "s", "z");
  model.Node("MatMul", {"a", "m"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(model, {{2, 3}, {3, 4}}), HasSubstr("y [2,4] = matmul(a, m)\n"));
  OnnxBuilder large = QuantizedModel();
  large.Input("x", {2, 33025}).Input("m", {33025, 4});
  AddPair(&large, "x", "a", "s", "z");
  AddPair(&large, "m", "b", "s", "z");
  large.Node("MatMul", {"a", "b"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(large, {{2, 33025}, {33025, 4}}), HasSubstr(" = integer_matmul("));
  OnnxBuilder larger = QuantizedModel();
  larger.Input("x", {2, 33026}).Input("m", {33026, 4});
  AddPair(&larger, "x", "a", "s", "z");
  AddPair(&larger, "m", "b", "s", "z");
  larger.Node("MatMul", {"a", "b"}, {"y"}).Output("y");
  EXPECT_THAT(AfterPasses(larger, {{2, 33026}, {33026, 4}}), HasSubstr(" = matmul("));
}

// Random networks of pairs keep their numbers up to a step of the last grid.
TEST(QuantizationPassesTest, PassesKeepTheNumbers) {
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
    absl::StatusOr<network::Network> network = Built(model, {dims});
    ASSERT_TRUE(network.ok()) << network.status();
    Elements image(*ElementCount(dims));
    for (size_t i = 0; i < image.size(); ++i) image[i] = std::sin(static_cast<double>(i));
    const std::vector<Elements> want = Interpret(*network, {image});
    network::RunPasses(&*network);
    const std::vector<Elements> got = Interpret(*network, {image});
    for (size_t i = 0; i < want[0].size(); ++i)
      ASSERT_NEAR(got[0][i], want[0][i], 1e-5) << "seed " << seed << "\n"
                                               << NetworkToText(*network);
  }
}

}  // namespace
}  // namespace tilewire::reader
