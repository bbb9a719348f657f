// SPDX-License-Identifier: Apache-2.0
//
// The passes that choose types: chains of conversions, and truth values.
#include "absl/strings/str_cat.h"
#include "engine/network/passes/passes.h"
#include "tests/engine/onnx/fixture.h"

namespace tilewire::reader {

using network::Network;
namespace {

std::string After(const OnnxBuilder& model, void (*pass)(Network*), const std::vector<Dims>& dims) {
  absl::StatusOr<Network> network = Built(model, dims);
  if (!network.ok()) return network.status().ToString();
  pass(&*network);
  network::RemoveDead(&*network);
  return NetworkToText(*network);
}

// s8 lacks some of the numbers of u8, so the conversion to it stays.
TEST(ConversionPassesTest, ConversionsCollapseWhereTheTypeBetweenHasEveryNumber) {
  OnnxBuilder model;
  model.Input("x", {2}, onnx::TensorProto::UINT8);
  const auto cast = [&](const char* from, const char* to, onnx::TensorProto::DataType type) {
    model.Node("Cast", {from}, {to}, {Int("to", type)});
  };
  cast("x", "wide", onnx::TensorProto::INT32);
  cast("wide", "signed", onnx::TensorProto::INT8);
  cast("signed", "wider", onnx::TensorProto::INT64);
  cast("wider", "y", onnx::TensorProto::UINT16);
  model.Output("y", onnx::TensorProto::UINT16);
  EXPECT_EQ(After(model, network::CollapseConverts, {{2}}),
            "input x u8 [2]\ny u16 [2] = convert(x) via s8\noutput y\n");
}

OnnxBuilder CastsOf(const std::vector<onnx::TensorProto::DataType>& types) {
  OnnxBuilder model;
  model.Input("x", {2});
  std::string last = "x";
  for (size_t i = 0; i < types.size(); ++i) {
    const std::string next = i + 1 < types.size() ? absl::StrCat(i) : "y";
    model.Node("Cast", {last}, {next}, {Int("to", types[i])});
    last = next;
  }
  model.Output("y", types.back());
  return model;
}

// By the types that change a number: s32 has every u8, and what is not 0 stays so in s8.
TEST(ConversionPassesTest, ChainsOfConversionsBecomeOne) {
  using T = onnx::TensorProto;
  const OnnxBuilder model =
      CastsOf({T::INT32, T::INT64, T::UINT8, T::INT32, T::INT8, T::INT64, T::FLOAT, T::BOOL,
               T::INT64, T::FLOAT, T::UINT8, T::BOOL, T::FLOAT});
  EXPECT_EQ(AfterPasses(model, {{2}}),
            "input x [2]\n11 [2] = convert(x) via s64,u8,bool\noutput 11\n");
  absl::StatusOr<Network> network = Built(model, {{2}});
  ASSERT_TRUE(network.ok()) << network.status();
  network::RunPasses(&*network);
  const Elements numbers = {-0.5, 256.5, 300.7}, expected = {0, 0, 1};
  for (size_t i = 0; i < numbers.size(); ++i)
    ExpectNear(Interpret(*network, {{numbers[i], 1}})[0], {expected[i], 1});
}

// The chain would be computed twice.
TEST(ConversionPassesTest, ConversionsThatOthersReadStay) {
  OnnxBuilder model(17);
  model.Input("x", {2}).Node("Cast", {"x"}, {"a"}, {Int("to", 3)});
  model.Node("Cast", {"a"}, {"y"}, {Int("to", 2)}).Output("a", onnx::TensorProto::INT8);
  model.Output("y", onnx::TensorProto::UINT8);
  EXPECT_THAT(AfterPasses(model, {{2}}), HasSubstr("y u8 [2] = convert(a)\n"));
}

TEST(ConversionPassesTest, TruthValuesThatOnlyChoicesReadAreBytes) {
  OnnxBuilder model(17);
  model.Input("x", {2}).Input("z", {2}).Node("Less", {"x", "z"}, {"less"});
  model.Node("Equal", {"x", "z"}, {"equal"}).Node("Not", {"equal"}, {"differ"});
  model.Node("And", {"less", "differ"}, {"both"}).Node("Where", {"both", "x", "z"}, {"y"});
  model.Output("y").Output("both", onnx::TensorProto::BOOL);
  EXPECT_EQ(After(model, network::NarrowTruths, {{2}, {2}}),
            "input x [2]\ninput z [2]\nless u8 [2] = less(x, z)\nequal u8 [2] = equal(x, z)\n"
            "differ u8 [2] = not(equal)\nboth u8 [2] = and(less, differ)\n"
            "y [2] = where(both, x, z)\nboth bool [2] = convert(both)\noutput y\noutput both\n");
}

// A sum takes one of them as a real number, and the other is compared with it.
TEST(ConversionPassesTest, TruthValuesThatArithmeticReadsStayReal) {
  OnnxBuilder model(17);
  model.Input("x", {2}).Input("z", {2}).Node("Less", {"x", "z"}, {"less"});
  model.Node("Equal", {"x", "z"}, {"equal"}).Node("Or", {"less", "equal"}, {"either"});
  model.Node("Cast", {"less"}, {"real"}, {Int("to", 1)}).Node("Add", {"real", "x"}, {"sum"});
  model.Node("Where", {"either", "sum", "z"}, {"y"}).Output("y");
  const std::string text = After(model, network::NarrowTruths, {{2}, {2}});
  EXPECT_THAT(
      text, AllOf(HasSubstr("less [2] ="), HasSubstr("equal [2] ="), HasSubstr("either u8 [2] =")));
}

}  // namespace
}  // namespace tilewire::reader
