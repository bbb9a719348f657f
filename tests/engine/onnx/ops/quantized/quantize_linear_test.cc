// SPDX-License-Identifier: Apache-2.0
//
// The networks that the operators of engine/onnx/ops/quantized/quantize_linear.cc become, what
// these compute, and what they refuse.
#include "tests/engine/onnx/quantized_model.h"

namespace tilewire::reader {
namespace {

TEST(QuantizeLinearTest, TypesFollowTheZeroPoint) {
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

TEST(QuantizeLinearTest, WhatMovesIntegersKeepsThemAndWhatComputesRefusesThem) {
  OnnxBuilder model = QuantizedModel();
  model.Input("x", {1, 2, 4, 4}).Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("MaxPool", {"q"}, {"m"}, {Ints("kernel_shape", {2, 2})});
  model.Node("Flatten", {"m"}, {"f"}).Output("f");
  EXPECT_EQ(BuiltText(model, {{1, 2, 4, 4}}),
            "input x [1,2,4,4]\nq u8 [1,2,4,4] = quantize(x) 0.5@128\n"
            "m u8 [1,2,3,3] = max_pooling(q) kernel=[2,2]\nf u8 [1,18] = reshape(m)\n"
            "f [1,18] = dequantize(f) 1@0\noutput f\n");
  model.Node("Sigmoid", {"q"}, {"y"}).Output("y");
  EXPECT_THAT(BuiltText(model, {{1, 2, 4, 4}}), HasSubstr("UNIMPLEMENTED: node 'node_y'"));
}

TEST(QuantizeLinearTest, ComputedGridsAreArithmetic) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Bytes("w", {3, 4}, true).Node("MatMulInteger", {"q", "w", "z"}, {"y"}).Output("y");
  const absl::StatusOr<network::Network> network = Built(model, {{2, 3}});
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

// An initializer of a type that numbers of 8 bits stand for; `bits` are packed as files pack them.
void AddPacked(OnnxBuilder* model, const std::string& name, int type,
               const std::vector<int64_t>& dims, const std::string& bits, bool is_typed = false) {
  onnx::TensorProto* tensor =
      model->Tensor(name, dims, static_cast<onnx::TensorProto::DataType>(type));
  if (!is_typed) return tensor->set_raw_data(bits);
  for (const char byte : bits) tensor->add_int32_data(static_cast<uint8_t>(byte));
}

constexpr int kUint4 = 21, kInt4 = 22, kFloat4 = 23, kUint2 = 25, kInt2 = 26, kE4m3fn = 17;

TEST(QuantizeLinearTest, WeightsOfFewBits) {
  const struct {
    int type;
    std::string bits;
    Elements numbers;
  } cases[] = {{kInt4, "\x80\x7F\x01", {0, -8, -1, 7, 1}},
               {kUint4, "\x80\x7F\x01", {0, 8, 15, 7, 1}},
               {kInt2, "\xE4\x02", {0, 1, -2, -1, -2}},
               {kUint2, "\xE4\x02", {0, 1, 2, 3, 2}},
               {kFloat4, "\x91\xF7\x03", {0.5, -0.5, 6, -6, 1.5}}};
  for (const auto& one : cases) {
    for (const bool is_typed : {false, true}) {
      OnnxBuilder model(21);
      model.Input("x", {5}).Floats("s", {}, {2});
      AddPacked(&model, "w", one.type, {5}, one.bits, is_typed);
      model.Node("DequantizeLinear", {"w", "s"}, {"d"}).Node("Add", {"x", "d"}, {"y"}).Output("y");
      Elements expected = one.numbers;
      for (double& number : expected) number *= 2;
      EXPECT_EQ(Computed(model, {{5}}, {Elements(5, 0)})[0], expected) << one.type << is_typed;
    }
  }
}

// All five forms: their ones, their largest numbers, NaN.
TEST(QuantizeLinearTest, WeightsOfEightBitsThatAreRealNumbers) {
  const struct {
    int type;
    std::string bits;
    Elements numbers;
  } cases[] = {{17, "\x38\x7E\x01", {1, 448, 0x1p-9}},
               {18, "\x40\x7F\x81", {1, 240, -0x1p-10}},
               {19, "\x3C\x7B\xFC", {1, 57344, -INFINITY}},
               {20, "\x40\x7F\x01", {1, 57344, 0x1p-17}},
               {24, "\x7F\x80\x82", {1, 2, 8}}};
  for (const auto& one : cases) {
    OnnxBuilder model(21);
    model.Input("x", {3}).Floats("s", {}, {1});
    AddPacked(&model, "w", one.type, {3}, one.bits);
    model.Node("DequantizeLinear", {"w", "s"}, {"d"}).Node("Add", {"x", "d"}, {"y"}).Output("y");
    EXPECT_EQ(Computed(model, {{3}}, {{0, 0, 0}})[0], one.numbers) << one.type;
  }
}

// They stay in the file, packed, until a network reads them: 20,480 elements in 10,240 bytes.
TEST(QuantizeLinearTest, LargeWeightsInBlocksStayInTheFile) {
  constexpr int64_t kRows = 128, kColumns = 160, kBlock = 32;
  OnnxBuilder model(21);
  std::string bits;
  for (int64_t i = 0; i < kRows * kColumns / 2; ++i) bits.push_back(static_cast<char>(i * 37));
  model.Input("x", {1, kRows}).Floats("s", {kRows / kBlock, kColumns});
  AddPacked(&model, "w", kInt4, {kRows, kColumns}, bits);
  model.Node("DequantizeLinear", {"w", "s"}, {"d"}, {Int("axis", 0), Int("block_size", kBlock)});
  model.Node("MatMul", {"x", "d"}, {"y"}).Output("y");
  const auto opened = Open(model);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_TRUE((*opened)->CheckFiles().ok());
  const auto network = (*opened)->Specialize({Dims{1, kRows}});
  ASSERT_TRUE(network.ok()) << network.status();
  Elements x(kRows, 0);
  x[70] = 1;  // the row of block 2
  const std::vector<Elements> y = Interpret(*network, {x});
  const auto* scales =
      reinterpret_cast<const float*>(model.graph().initializer(0).raw_data().data());
  for (int64_t c = 0; c < kColumns; ++c) {
    const int64_t place = 70 * kColumns + c;
    const int nibble = (static_cast<uint8_t>(bits[place / 2]) >> (place % 2 * 4)) & 15;
    const float scale = scales[2 * kColumns + c];
    EXPECT_NEAR(y[0][c], (nibble > 7 ? nibble - 16 : nibble) * scale, 1e-5) << c;
  }
}

// 1.0625 lies halfway between 1 and 1.125.
TEST(QuantizeLinearTest, RealNumbersOfEightBitsAreHeldInF32) {
  for (const bool saturates : {true, false}) {
    OnnxBuilder model(21);
    model.Input("x", {1, 6}).Floats("s", {}, {0.5f});
    AddPacked(&model, "z", kE4m3fn, {}, std::string(1, '\0'));
    model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"}, {Int("saturate", saturates ? 1 : 0)});
    model.Node("DequantizeLinear", {"q", "s"}, {"y"}).Output("y");
    const double beyond = saturates ? 224 : NAN;
    const Elements got =
        Computed(model, {{1, 6}}, {{0.53125, 0.59375, -0.0006, 1e6, -1e6, 232}})[0];
    const Elements expected = {0.5, 0.625, -0x1p-10, beyond, -beyond, 224};
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])))
          << i << ": " << got[i];
    }
  }
}

TEST(QuantizeLinearTest, IntegersOfFourBitsAreBytesWithinTheirRange) {
  OnnxBuilder model(21);
  model.Input("x", {1, 5}).Floats("s", {}, {0.5f});
  AddPacked(&model, "z", kInt4, {}, "\x0D");  // -3
  model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"});
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{1, 5}}, {{0.3, -0.26, 100, -100, 2.25}})[0],
            (Elements{0.5, -0.5, 5, -2.5, 2}));
  EXPECT_THAT(BuiltText(model, {{1, 5}}), HasSubstr("q s8 [1,5] = quantize"));
}

// Each column has a zero point of its own.
TEST(QuantizeLinearTest, WeightsOfFewBitsLoseTheirZeroPointsWhenTheyArePacked) {
  OnnxBuilder model(21);
  model.Input("x", {1, 3}).Floats("s", {2}, {1, 0.5f});
  AddPacked(&model, "w", kUint4, {3, 2}, "\xF0\x27\x8A");  // columns 0 7 10, 15 2 8
  AddPacked(&model, "z", kUint4, {2}, "\xC3");             // 3, 12
  model.Node("DequantizeLinear", {"w", "s", "z"}, {"d"}, {Int("axis", 1)});
  model.Node("MatMul", {"x", "d"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{1, 3}}, {{1, 2, 3}})[0],
            (Elements{-3 + 2 * 4 + 3 * 7, (3 + 2 * -10 + 3 * -4) * 0.5}));
}

TEST(QuantizeLinearTest, OtherOperatorsRefuseSmallTypes) {
  OnnxBuilder model(21);
  model.Input("x", {2, 2});
  AddPacked(&model, "w", kInt4, {2, 2}, "\x21\x43");
  AddPacked(&model, "f", kE4m3fn, {2, 2}, "\x38\x38\x38\x38");
  model.Node("MatMul", {"x", "w"}, {"y"}).Node("Add", {"f", "x"}, {"v"}).Output("y").Output("v");
  const std::string text = BuiltText(model, {{2, 2}});
  EXPECT_THAT(text, HasSubstr("node 'node_y' (MatMul of ai.onnx, opset 21): input 1 is of s4"));
  EXPECT_THAT(text, HasSubstr("node 'node_v' (Add of ai.onnx, opset 21): input 0 is of f8e4m3fn"));
}

TEST(QuantizeLinearTest, SixteenBitsAreHeldInF32) {
  OnnxBuilder model(21);
  model.Input("x", {2, 2}).Floats("s", {}, {0.5f});
  model.Tensor("z", {}, onnx::TensorProto::UINT16)->add_int32_data(40000);
  model.Node("QuantizeLinear", {"x", "s", "z"}, {"q"}).Output("q", onnx::TensorProto::UINT16);
  model.Node("DequantizeLinear", {"q", "s", "z"}, {"y"}).Output("y");
  EXPECT_EQ(Computed(model, {{2, 2}}, {{0.3, -1e6, 1e6, 0.25}}),
            (std::vector<Elements>{{40001, 0, 65535, 40000}, {0.5, -20000, 12767.5, 0}}));
}

TEST(QuantizeLinearTest, RefusesWhatItCannotHold) {
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
  EXPECT_THAT(message(wide),
              HasSubstr("to s32; supported are integers of at most 16 bits, f8 and f4"));
  OnnxBuilder shifted = QuantizedModel();
  shifted.Input("x", {1, 2, 5, 5}).Node("QuantizeLinear", {"x", "s", "f"}, {"y"}).Output("y");
  AddPacked(&shifted, "f", kE4m3fn, {}, "\x38");
  EXPECT_THAT(message(shifted), HasSubstr("a zero point of 1 for real numbers"));
  OnnxBuilder not_a_number = QuantizedModel();
  not_a_number.Input("x", {1, 2, 5, 5}).Floats("ns", {1, 2, 3, 5}, std::vector<float>(30, NAN));
  not_a_number.Bytes("w", {1, 2, 5, 5}, true);
  not_a_number.Node("DequantizeLinear", {"w", "ns"}, {"y"}, {Int("axis", 2), Int("block_size", 2)});
  EXPECT_THAT(message(not_a_number.Output("y")), HasSubstr("a scale of nan"));
  OnnxBuilder no_divisor = QuantizedModel();
  no_divisor.Input("x", {1, 2, 5, 5});
  no_divisor.Floats("os", {1, 2, 3, 5}, std::vector<float>(30, 0));
  no_divisor.Node("QuantizeLinear", {"x", "os"}, {"y"}, {Int("axis", 2), Int("block_size", 2)});
  EXPECT_THAT(message(no_divisor.Output("y")), HasSubstr("a scale of 0"));
  OnnxBuilder blocks = QuantizedModel();
  blocks.Input("x", {1, 2, 5, 5}).Floats("bs", {1, 2, 2, 5}).Bytes("w", {1, 2, 5, 5}, true);
  blocks.Node("DequantizeLinear", {"w", "bs"}, {"y"}, {Int("axis", 2), Int("block_size", 2)});
  EXPECT_THAT(message(blocks.Output("y")),
              HasSubstr("of dims [1,2,2,5] for blocks of 2 along axis 2 of [1,2,5,5]; expected are "
                        "[1,2,3,5]"));
}

}  // namespace
}  // namespace tilewire::reader
