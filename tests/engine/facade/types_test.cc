// SPDX-License-Identifier: Apache-2.0
//
// Element types from the request to the answer: exact over the whole range, scalars without
// dimensions, and what is refused by name.
#include <cmath>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/explanation.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/engine/facade/typed_model.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

struct TypeRow {
  TensorProto::DataType onnx;
  DataType type;
  std::string bytes;  // three elements: the ends of the range, and one between
};

template <typename T>
std::string Ends(T between) {
  using Limits = std::numeric_limits<T>;
  return Bytes<T>({Limits::lowest(), between, Limits::max()});
}

std::vector<TypeRow> AllTypes() {
  return {{TensorProto::FLOAT, DataType::kF32, Ends<float>(0.1f)},
          {TensorProto::DOUBLE, DataType::kF64, Ends<double>(0.1)},
          {TensorProto::FLOAT16, DataType::kF16, Bytes<uint16_t>({0xFBFF, 0x2E66, 0x7BFF})},
          {TensorProto::BFLOAT16, DataType::kBf16, Bytes<uint16_t>({0xFF7F, 0x3DCC, 0x7F7F})},
          {TensorProto::BOOL, DataType::kBool, Bytes<uint8_t>({0, 1, 1})},
          {TensorProto::UINT8, DataType::kU8, Ends<uint8_t>(7)},
          {TensorProto::INT8, DataType::kS8, Ends<int8_t>(7)},
          {TensorProto::UINT16, DataType::kU16, Ends<uint16_t>(7)},
          {TensorProto::INT16, DataType::kS16, Ends<int16_t>(7)},
          {TensorProto::UINT32, DataType::kU32, Ends<uint32_t>(16777217)},
          {TensorProto::INT32, DataType::kS32, Ends<int32_t>(16777217)},
          {TensorProto::UINT64, DataType::kU64, Ends<uint64_t>(9007199254740993)},
          {TensorProto::INT64, DataType::kS64, Ends<int64_t>(9007199254740993)}};
}

TEST(TypesTest, EveryTypeGoesThroughUnchanged) {
  for (const TypeRow& row : AllTypes()) {
    SCOPED_TRACE(DataTypeName(row.type));
    OnnxBuilder model;
    model.Input("x", {3}, row.onnx).Node("Identity", {"x"}, {"y"}).Output("y", row.onnx);
    const auto loaded = Load(model);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ((*loaded)->signature().inputs[0].type, row.type);
    EXPECT_EQ((*loaded)->signature().outputs[0].type, row.type);
    ExpectAnswer<char>(model, {row.bytes}, {row.bytes.begin(), row.bytes.end()});
  }
}

// Two rows of a matrix change places, and a row is joined to them.
TEST(TypesTest, EveryTypeIsMovedUnchanged) {
  for (const TypeRow& row : AllTypes()) {
    SCOPED_TRACE(DataTypeName(row.type));
    OnnxBuilder model;
    model.Input("x", {3}, row.onnx).Integers("column", {3, 1}).Integers("order", {2, 0});
    model.Node("Reshape", {"x", "column"}, {"c"}).Node("Gather", {"c", "order"}, {"g"});
    model.Node("Concat", {"g", "c"}, {"j"}, {Int("axis", 0)});
    model.Node("Transpose", {"j"}, {"y"}).Output("y", row.onnx);
    const size_t size = row.bytes.size() / 3;
    const std::string expected = row.bytes.substr(2 * size) + row.bytes.substr(0, size) + row.bytes;
    ExpectAnswer<char>(model, {row.bytes}, {expected.begin(), expected.end()});
  }
}

TEST(TypesTest, AScalarHasNoDimensions) {
  OnnxBuilder model;
  model.Input("x", {}).Input("i", {}, TensorProto::INT64);
  model.Node("Cast", {"i"}, {"f"}, {Int("to", TensorProto::FLOAT)});
  model.Node("Add", {"x", "f"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ((*loaded)->signature().inputs[0].dims, Dims());
  EXPECT_EQ((*loaded)->signature().outputs[0].dims, Dims());
  const auto answer = Answer(model, {Bytes<float>({1.5f}), Bytes<int64_t>({2})});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->dims, Dims());
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(answer->bytes.data()), answer->bytes.size()),
            Bytes<float>({3.5f}));
}

TEST(TypesTest, ASumOfAllElementsIsAScalar) {
  OnnxBuilder model;
  model.Input("x", {3}).Node("ReduceSum", {"x"}, {"y"}, {Int("keepdims", 0)});
  model.Output("y");
  const auto answer = Answer(model, {Bytes<float>({1, 2, 3})});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->dims, Dims());
}

TEST(TypesTest, IntegersAreComputedInTheirType) {
  OnnxBuilder model;
  model.Input("x", {2}, TensorProto::INT64).Integers("c", {9007199254740993});
  model.Node("Add", {"x", "c"}, {"y"}).Output("y", TensorProto::INT64);
  ExpectAnswer<int64_t>(model, {Bytes<int64_t>({9007199254740993, -1})},
                        {18014398509481986, 9007199254740992});
  OnnxBuilder bytes;
  bytes.Input("x", {2}, TensorProto::UINT8).Input("z", {2}, TensorProto::UINT8);
  bytes.Node("Sub", {"x", "z"}, {"y"}).Output("y", TensorProto::UINT8);
  ExpectAnswer<uint8_t>(bytes, {Bytes<uint8_t>({1, 200}), Bytes<uint8_t>({2, 100})}, {255, 100});
}

// Results of bytes that stay in their range remain bytes for the next operator.
TEST(TypesTest, ArithmeticOfBytesWrapsAroundAfterAnyOperator) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> before = {
      {"Max", {"x", "x"}},        {"Min", {"x", "x"}}, {"Mod", {"x", "high"}},
      {"Where", {"m", "x", "x"}}, {"Relu", {"x"}},     {"Clip", {"x", "low", "high"}},
      {"Identity", {"x"}}};
  for (const auto& [op, inputs] : before) {
    SCOPED_TRACE(op);
    OnnxBuilder model(18);
    model.Input("x", {3}, TensorProto::UINT8).Input("m", {3}, TensorProto::BOOL);
    model.Bytes("low", {}, false, {0}).Bytes("high", {}, false, {255});
    model.Bytes("three", {}, false, {3});
    model.Node(op, inputs, {"p"}).Node("Mul", {"p", "three"}, {"y"});
    model.Output("y", TensorProto::UINT8);
    ExpectAnswer<uint8_t>(model, {Bytes<uint8_t>({200, 3, 0}), Bytes<uint8_t>({1, 0, 1})},
                          {88, 9, 0});
  }
}

TEST(TypesTest, ComparisonsOfWideIntegersAreExact) {
  OnnxBuilder model;
  model.Input("x", {2}, TensorProto::INT64).Input("z", {2}, TensorProto::INT64);
  model.Node("Less", {"x", "z"}, {"l"}).Node("Where", {"l", "x", "z"}, {"y"});
  model.Output("y", TensorProto::INT64).Output("l", TensorProto::BOOL);
  ExpectAnswer<int64_t>(
      model, {Bytes<int64_t>({9007199254740993, 5}), Bytes<int64_t>({9007199254740992, 6})},
      {9007199254740992, 5});
}

TEST(TypesTest, LabelsAreIntegers) {
  OnnxBuilder model;
  model.Input("x", {2, 3}).Node("ArgMax", {"x"}, {"y"}, {Int("axis", 1), Int("keepdims", 0)});
  model.Output("y", TensorProto::INT64);
  ExpectAnswer<int64_t>(model, {Bytes<float>({1, 5, 2, 9, 0, 3})}, {1, 0});
}

TEST(TypesTest, TokensTakeRowsOfATable) {
  OnnxBuilder model;
  model.Input("tokens", {2}, TensorProto::INT64).Floats("table", {3, 2}, {0, 1, 10, 11, 20, 21});
  model.Node("Gather", {"table", "tokens"}, {"y"}).Output("y");
  ExpectAnswer<float>(model, {Bytes<int64_t>({2, -3})}, {20, 21, 0, 1});
  EXPECT_THAT(Answer(model, {Bytes<int64_t>({2, int64_t{1} << 40})}),
              StatusIs(absl::StatusCode::kInvalidArgument, "index 1099511627776"));
}

TEST(TypesTest, AMaskOfTruthValues) {
  OnnxBuilder model;
  model.Input("mask", {3}, TensorProto::BOOL).Input("x", {3}).Floats("zero", {1}, {0});
  model.Node("Not", {"mask"}, {"n"}).Node("Where", {"n", "zero", "x"}, {"y"}).Output("y");
  ExpectAnswer<float>(model, {std::string("\0\1\377", 3), Bytes<float>({1, 2, 3})}, {0, 2, 3});
}

TEST(TypesTest, AnImageOfBytesBecomesNumbers) {
  OnnxBuilder model;
  model.Input("x", {1, 1, 1, 3}, TensorProto::UINT8);
  model.Node("Cast", {"x"}, {"f"}, {Int("to", TensorProto::FLOAT)});
  model.Floats("scale", {}, {0.5f}).Node("Mul", {"f", "scale"}, {"y"}).Output("y");
  ExpectAnswer<float>(model, {Bytes<uint8_t>({0, 255, 3})}, {0, 127.5f, 1.5f});
}

struct IntegerConvolutionCase {
  int64_t channels, size;
  int lowest_pixel, lowest_tap;  // of each, 255 and 127 are the highest
};

// 3x3, `channels` to 4 channels.
void ExpectExactSums(const IntegerConvolutionCase& c) {
  SCOPED_TRACE(c.channels);
  constexpr int64_t kOutputs = 4;
  OnnxBuilder model;
  model.Input("x", {1, c.channels, c.size, c.size}, TensorProto::UINT8);
  std::vector<uint8_t> pixels(c.channels * c.size * c.size);
  for (size_t i = 0; i < pixels.size(); ++i) {
    pixels[i] = static_cast<uint8_t>(255 - i * 97 % (256 - c.lowest_pixel));
  }
  std::vector<int> taps(kOutputs * c.channels * 9);
  for (size_t i = 0; i < taps.size(); ++i) {
    taps[i] = 127 - static_cast<int>(i * 31 % (128 - c.lowest_tap));
  }
  model.Bytes("w", {kOutputs, c.channels, 3, 3}, /*is_signed=*/true, taps);
  model.Node("ConvInteger", {"x", "w"}, {"y"}).Output("y", TensorProto::INT32);
  std::vector<int32_t> expected;
  for (int64_t o = 0; o < kOutputs; ++o) {
    for (int64_t at = 0; at < (c.size - 2) * (c.size - 2); ++at) {
      const int64_t row = at / (c.size - 2), column = at % (c.size - 2);
      int32_t sum = 0;
      for (int64_t i = 0; i < c.channels * 9; ++i) {
        const int64_t pixel = i / 9 * c.size * c.size + (row + i / 3 % 3) * c.size + column + i % 3;
        sum += pixels[pixel] * taps[o * c.channels * 9 + i];
      }
      expected.push_back(sum);
    }
  }
  ExpectAnswer<int32_t>(model, {Bytes(pixels)}, expected);
}

// A 3x3 convolution of real numbers would be Winograd's, whose transforms round; f32 holds integers
// up to 2^24, which 530 products of the largest bytes exceed.
TEST(TypesTest, SumsOfIntegerConvolutionsAreExact) {
  ExpectExactSums({.channels = 28, .size = 14, .lowest_pixel = 5, .lowest_tap = -127});
  ExpectExactSums({.channels = 28, .size = 5, .lowest_pixel = 250, .lowest_tap = 120});
  ExpectExactSums({.channels = 100, .size = 6, .lowest_pixel = 250, .lowest_tap = 120});
  ExpectExactSums({.channels = 600, .size = 5, .lowest_pixel = 5, .lowest_tap = -127});
  ExpectExactSums({.channels = 600, .size = 5, .lowest_pixel = 251, .lowest_tap = 121});
}

// The activations are f32, and the answer is rounded once.
TEST(TypesTest, HalvesAreComputedInF32) {
  OnnxBuilder model;
  model.Input("x", {2}, TensorProto::FLOAT16).Input("z", {2}, TensorProto::FLOAT16);
  model.Node("Mul", {"x", "z"}, {"p"}).Node("Sub", {"p", "x"}, {"y"});
  model.Output("y", TensorProto::FLOAT16);
  // 1 + 2^-10 squared, less itself: 2^-10 + 2^-20; 1024 times 64 is beyond f16, less 1024 not.
  ExpectAnswer<uint16_t>(model,
                         {Bytes<uint16_t>({0x3C01, 0x6400}), Bytes<uint16_t>({0x3C01, 0x5400})},
                         {0x1401, 0x7BE0});
}

// Large ones are left in the file until they are packed; small ones may be typed contents.
TEST(TypesTest, WeightsOfHalvesAreWidened) {
  for (const auto& [type, half, one, sum] :
       {std::tuple(TensorProto::FLOAT16, 0x3800, 0x3C00, 0x5401),
        std::tuple(TensorProto::BFLOAT16, 0x3F00, 0x3F80, 0x4280)}) {
    OnnxBuilder model;
    model.Input("x", {1, 128}, type);
    model.Tensor("w", {128, 256}, type)
        ->set_raw_data(Bytes(std::vector<uint16_t>(128 * 256, static_cast<uint16_t>(half))));
    model.Tensor("b", {1}, type)->add_int32_data(type == TensorProto::FLOAT16 ? 0x2C00 : 0);
    model.Node("MatMul", {"x", "w"}, {"p"}).Node("Add", {"p", "b"}, {"y"}).Output("y", type);
    ExpectAnswer<uint16_t>(model, {Bytes(std::vector<uint16_t>(128, static_cast<uint16_t>(one)))},
                           std::vector<uint16_t>(256, static_cast<uint16_t>(sum)));
  }
}

TEST(TypesTest, CastsBetweenWideTypesWrapAround) {
  OnnxBuilder model;
  model.Input("x", {3}, TensorProto::INT64);
  model.Node("Cast", {"x"}, {"y"}, {Int("to", TensorProto::INT16)});
  model.Output("y", TensorProto::INT16);
  ExpectAnswer<int16_t>(model, {Bytes<int64_t>({65537, -1, 40000})}, {1, -1, -25536});
}

TEST(TypesTest, CastsOfBytesWrapAround) {
  OnnxBuilder to_signed;
  to_signed.Input("x", {3}, TensorProto::UINT8);
  to_signed.Node("Cast", {"x"}, {"y"}, {Int("to", TensorProto::INT8)});
  to_signed.Output("y", TensorProto::INT8);
  ExpectAnswer<int8_t>(to_signed, {Bytes<uint8_t>({200, 127, 255})}, {-56, 127, -1});
  OnnxBuilder wider;
  wider.Input("x", {3}, TensorProto::INT8);
  wider.Node("Cast", {"x"}, {"y"}, {Int("to", TensorProto::UINT16)});
  wider.Node("Cast", {"x"}, {"z"}, {Int("to", TensorProto::UINT8)});
  wider.Node("Cast", {"z"}, {"w"}, {Int("to", TensorProto::UINT16)});
  wider.Node("Add", {"y", "w"}, {"s"}).Output("s", TensorProto::UINT16);
  ExpectAnswer<uint16_t>(wider, {Bytes<int8_t>({-3, 5, -128})}, {250, 10, 0});
}

// Whatever type the integers had before, and whether they were real numbers once.
TEST(TypesTest, ChainsOfCastsWrapAround) {
  struct Chain {
    std::vector<TensorProto::DataType> types;  // from the input's to u8
    std::vector<float> x;
    std::vector<uint8_t> expected;
  };
  const std::vector<Chain> chains = {
      {{TensorProto::FLOAT, TensorProto::INT32, TensorProto::UINT8}, {300, -1, 7}, {44, 255, 7}},
      {{TensorProto::FLOAT, TensorProto::INT8, TensorProto::INT32, TensorProto::UINT8},
       {-56, 100, -1},
       {200, 100, 255}},
      {{TensorProto::FLOAT, TensorProto::UINT8, TensorProto::INT16, TensorProto::INT8,
        TensorProto::UINT8},
       {200, 128, 3},
       {200, 128, 3}},
      {{TensorProto::FLOAT, TensorProto::INT64, TensorProto::UINT16, TensorProto::UINT8},
       {-3, 65537, 9},
       {253, 1, 9}}};
  for (const Chain& chain : chains) {
    OnnxBuilder model;
    model.Input("x", {3}, chain.types[0]);
    std::string name = "x";
    for (size_t i = 1; i < chain.types.size(); ++i) {
      const std::string next = absl::StrCat("c", i);
      model.Node("Cast", {name}, {next}, {Int("to", chain.types[i])});
      name = next;
    }
    model.Output(name, TensorProto::UINT8);
    SCOPED_TRACE(name);
    ExpectAnswer<uint8_t>(model, {Bytes(chain.x)}, chain.expected);
  }
}

TEST(TypesTest, CastsToNarrowTypesRoundInChains) {
  OnnxBuilder model(19);
  model.Input("x", {2}).Input("like", {1}, TensorProto::BFLOAT16);
  model.Node("CastLike", {"x", "like"}, {"b"}).Node("Mul", {"b", "two"}, {"d"});
  model.Tensor("two", {1}, TensorProto::BFLOAT16)->set_raw_data(Bytes<uint16_t>({0x4000}));
  model.Node("CastLike", {"three", "like"}, {"c"}).Floats("three", {1}, {3.01f});
  model.Node("Cast", {"d"}, {"f"}, {Int("to", TensorProto::FLOAT)});
  model.Node("Cast", {"f"}, {"h"}, {Int("to", TensorProto::FLOAT16)});
  model.Node("CastLike", {"h", "x"}, {"r"}).Node("CastLike", {"c", "x"}, {"k"});
  model.Node("Sub", {"r", "k"}, {"y"}).Output("y");
  // 0.81910545 is 0.8203125 in bf16, and 3.01 is 3.015625.
  ExpectAnswer<float>(model, {Bytes<float>({0.81910545f, 2049}), Bytes<uint16_t>({0})},
                      {1.640625f - 3.015625f, 4096 - 3.015625f});
}

// An integer of f32 that a NaN became is an integer: a select may drop it, an index may be it.
TEST(TypesTest, NanBecomesAnInteger) {
  OnnxBuilder model;
  model.Input("x", {3}).Input("table", {4}).Integers("last", {3});
  model.Node("Cast", {"x"}, {"i"}, {Int("to", TensorProto::INT64)});
  model.Node("IsNaN", {"x"}, {"n"}).Node("Where", {"n", "last", "i"}, {"chosen"});
  model.Node("Gather", {"table", "i"}, {"plain"}).Node("Gather", {"table", "chosen"}, {"others"});
  model.Node("Add", {"plain", "others"}, {"y"}).Output("y");
  ExpectAnswer<float>(model, {Bytes<float>({NAN, 1, 2}), Bytes<float>({1, 2, 3, 4})}, {5, 4, 6});
}

TEST(TypesTest, ArithmeticAfterACastOfBytesIsOfItsType) {
  OnnxBuilder model;
  model.Input("x", {2}, TensorProto::UINT8).Integers("three_hundred", {300});
  model.Node("Cast", {"x"}, {"w"}, {Int("to", TensorProto::UINT16)});
  model.Node("Cast", {"three_hundred"}, {"c"}, {Int("to", TensorProto::UINT16)});
  model.Node("Sub", {"w", "c"}, {"d"});
  model.Node("Cast", {"d"}, {"y"}, {Int("to", TensorProto::FLOAT)}).Output("y");
  ExpectAnswer<float>(model, {Bytes<uint8_t>({0, 200})}, {65236, 65436});
}

TEST(TypesTest, BytesAreJoinedToConstantBytes) {
  OnnxBuilder model;
  model.Input("x", {2}, TensorProto::UINT8).Bytes("c", {1}, false, {200});
  model.Node("Concat", {"x", "c"}, {"y"}, {Int("axis", 0)});
  model.Output("y", TensorProto::UINT8);
  ExpectAnswer<uint8_t>(model, {Bytes<uint8_t>({1, 255})}, {1, 255, 200});
}

TEST(TypesTest, WideIntegersAreDequantized) {
  OnnxBuilder model;
  model.Input("x", {3}, TensorProto::INT32).Floats("s", {}, {0.5f});
  model.Node("DequantizeLinear", {"x", "s"}, {"y"}).Output("y");
  ExpectAnswer<float>(model, {Bytes<int32_t>({7, -7, 100001})}, {3.5f, -3.5f, 50000.5f});
}

TEST(TypesTest, AScalarTransposedIsItself) {
  OnnxBuilder model;
  model.Input("x", {2, 2}).Node("ReduceMax", {"x"}, {"m"}, {Int("keepdims", 0)});
  model.Node("Transpose", {"m"}, {"y"}).Output("y");
  ExpectAnswer<float>(model, {Bytes<float>({1, 4, 2, 3})}, {4});
}

TEST(TypesTest, InfinitiesAndNaNStay) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  OnnxBuilder model;
  model.Input("x", {3, 2});
  model.Node("ReduceLogSumExp", {"x"}, {"y"}, {Ints("axes", {1})}).Output("y");
  ExpectAnswer<float>(model, {Bytes<float>({-kInf, -kInf, kInf, 1, -kInf, 3})}, {-kInf, kInf, 3});
  OnnxBuilder celu;
  celu.Input("x", {2}).Node("Celu", {"x"}, {"y"}).Output("y");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto answer = Answer(celu, {Bytes<float>({nan, 2})});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(std::isnan(reinterpret_cast<const float*>(answer->bytes.data())[0]));
}

TEST(TypesTest, DoublesKeepTheirDigits) {
  OnnxBuilder model;
  model.Input("x", {2}, TensorProto::DOUBLE).Input("z", {2}, TensorProto::DOUBLE);
  model.Node("Mul", {"x", "z"}, {"y"}).Output("y", TensorProto::DOUBLE);
  ExpectAnswer<double>(model, {Bytes<double>({0.1, 1e200}), Bytes<double>({3, 1e100})},
                       {0.1 * 3, 1e300});
}

struct RefusedType {
  const char* why;
  TensorProto::DataType input, output;
  const char* op;
  const char* message;
};

// A result that depends on the number of bits is computed in the constant's type.
TEST(TypesTest, ConstantsKeepTheirNumberOfBits) {
  OnnxBuilder model(18);
  model.Bytes("c", {2}, false, {200, 5}).Bytes("one", {1}, false, {1});
  model.Input("x", {2}, TensorProto::UINT8).Node("BitwiseNot", {"c"}, {"n"});
  model.Node("BitShift", {"c", "one"}, {"s"}, {String("direction", "LEFT")});
  model.Node("BitwiseXor", {"n", "s"}, {"both"}).Node("BitwiseAnd", {"both", "x"}, {"y"});
  const auto answer = Answer(model.Output("y", TensorProto::UINT8), {Bytes<uint8_t>({255, 255})});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(ElementsOf<uint8_t>(*answer), (std::vector<uint8_t>{55 ^ 144, 250 ^ 10}));
}

TEST(TypesTest, WhatIsNotComputedIsRefusedByName) {
  const RefusedType cases[] = {
      {"a string", TensorProto::STRING, TensorProto::STRING, "Identity", "STRING"},
      {"integers in a function of real numbers", TensorProto::INT64, TensorProto::INT64, "Sigmoid",
       "takes s64"},
      {"an output of another type", TensorProto::INT64, TensorProto::FLOAT, "Identity",
       "output 'y' is declared f32"},
      {"real numbers as integers", TensorProto::FLOAT, TensorProto::INT64, "Sigmoid",
       "output 'y' is declared s64"},
  };
  for (const RefusedType& one : cases) {
    SCOPED_TRACE(one.why);
    OnnxBuilder model;
    model.Input("x", {2, 3}, one.input).Node(one.op, {"x"}, {"y"}).Output("y", one.output);
    EXPECT_THAT(Load(model).status(), StatusIs(absl::StatusCode::kUnimplemented, one.message));
  }
}

// The product is a step on u8, whatever the CPU has for it.
TEST(TypesTest, ProductsOfDynamicallyQuantizedRowsAreOfIntegers) {
  OnnxBuilder model(13);
  model.Input("x", {3, 300}).Node("DynamicQuantizeLinear", {"x"}, {"q", "s", "z"});
  model.Bytes("w", {300, 5}, true).Node("MatMulInteger", {"q", "w", "z"}, {"i"});
  model.Node("Cast", {"i"}, {"r"}, {Int("to", TensorProto::FLOAT)});
  model.Floats("ws", {5}).Node("Mul", {"s", "ws"}, {"step"});
  model.Node("Mul", {"r", "step"}, {"y"}).Output("y");
  const auto loaded = Load(model);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  const auto plan = (*loaded)->Explain({});
  ASSERT_TRUE(plan.ok()) << plan.status();
  std::vector<std::string> products;
  for (const PlanStep& step : plan->steps) {
    if (step.operations > 0) products.push_back(step.tensors[0].layout.substr(0, 3));
  }
  EXPECT_EQ(products, (std::vector<std::string>{"u8:"}));
}

// Numbers that f32 does not hold.
TEST(TypesTest, IntegersAreReducedInTheirType) {
  constexpr int64_t kLarge = int64_t{1} << 40;
  const std::string x = Bytes<int64_t>({kLarge + 1, -3, 5, kLarge, 7, -kLarge - 9});
  const struct {
    const char* op;
    std::vector<int64_t> expected;  // over the rows of [2,3]
  } cases[] = {{"ReduceSum", {kLarge + 3, -2}},
               {"ReduceMax", {kLarge + 1, kLarge}},
               {"ReduceMin", {-3, -kLarge - 9}},
               {"ReduceL1", {kLarge + 9, 2 * kLarge + 16}}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.op);
    OnnxBuilder model(18);
    model.Input("x", {2, 3}, TensorProto::INT64).Integers("last", {-1});
    model.Node(c.op, {"x", "last"}, {"y"}, {Int("keepdims", 0)});
    ExpectAnswer<int64_t>(model.Output("y", TensorProto::INT64), {x}, c.expected);
  }
  OnnxBuilder columns(18);
  columns.Input("x", {2, 3}, TensorProto::INT64).Integers("first", {0});
  columns.Node("ReduceSum", {"x", "first"}, {"y"}).Output("y", TensorProto::INT64);
  ExpectAnswer<int64_t>(columns, {x}, {2 * kLarge + 1, 4, -kLarge - 4});
}

TEST(TypesTest, ProductsOfWideIntegersWrapAround) {
  OnnxBuilder model(13);
  model.Input("x", {1, 2}, TensorProto::INT64).Input("w", {2, 2}, TensorProto::INT64);
  model.Node("MatMul", {"x", "w"}, {"p"}).Node("Relu", {"p"}, {"r"});
  model.Node("ArgMax", {"r"}, {"y"}, {Int("axis", 1), Int("keepdims", 0)});
  model.Output("p", TensorProto::INT64).Output("y", TensorProto::INT64);
  constexpr int64_t kLarge = int64_t{1} << 32;
  ExpectAnswer<int64_t>(model, {Bytes<int64_t>({kLarge, 3}), Bytes<int64_t>({kLarge, 5, -2, 7})},
                        {-6, 5 * kLarge + 21});
}

TEST(TypesTest, QuotientsOfIntegersAreCut) {
  OnnxBuilder model;
  model.Input("x", {3}, TensorProto::INT32).Input("z", {3}, TensorProto::INT32);
  model.Node("Div", {"x", "z"}, {"y"}).Output("y", TensorProto::INT32);
  ExpectAnswer<int32_t>(model, {Bytes<int32_t>({-7, 7, 1}), Bytes<int32_t>({2, 2, 0})}, {-3, 3, 0});
}

}  // namespace
}  // namespace tilewire::testing
