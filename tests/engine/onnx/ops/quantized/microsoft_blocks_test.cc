// SPDX-License-Identifier: Apache-2.0
//
// Weights of few bits in blocks (engine/onnx/ops/quantized/microsoft_blocks.cc): the order of the
// bits, zero points, rows of a table, and what is refused.
#include "tests/engine/onnx/op_case.h"

namespace tilewire::reader {
namespace {

// Two rows of 17 elements in blocks of 16, so that each row has two, of 8 bytes. Element 0 is 9,
// element 1 is 4, element 16 is 1 in row 0; row 1 has 8 everywhere. Scales are 1, 10, 2, 20.
OnnxBuilder WithWeights() {
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  std::string bytes(32, '\x88');
  bytes[0] = 0x49;
  bytes[8] = '\x81';
  model.Tensor("w", {2, 2, 8}, onnx::TensorProto::UINT8)->set_raw_data(bytes);
  model.Tensor("zeros", {2}, onnx::TensorProto::UINT8)->set_raw_data("\x53\x88");
  model.Floats("s", {4}, {1, 10, 2, 20}).Floats("real_zeros", {4}, {8, 0.5f, 7.5f, 8});
  return model;
}

void AddProduct(OnnxBuilder* model, const std::vector<std::string>& inputs,
                std::vector<onnx::AttributeProto> attributes = {}) {
  for (const auto& [name, value] : {std::pair("K", 17), {"N", 2}, {"block_size", 16}}) {
    const auto is_this = [name = std::string(name)](const auto& a) { return a.name() == name; };
    if (std::none_of(attributes.begin(), attributes.end(), is_this))
      attributes.push_back(Int(name, value));
  }
  model->Node("MatMulNBits", inputs, {"y"}, attributes).Output("y");
  model->graph().mutable_node()->rbegin()->set_domain("com.microsoft");
}

// x has 1 in the places 0, 1 and 16.
Elements ProductBy(const std::string& zero_points) {
  OnnxBuilder model = WithWeights();
  model.Input("x", {1, 17}).Floats("bias", {2}, {0.5f, 0.25f});
  AddProduct(&model, {"x", "w", "s", zero_points, "", "bias"});
  Elements x(17, 0);
  x[0] = x[1] = x[16] = 1;
  return Computed(model, {{1, 17}}, {x})[0];
}

TEST(MicrosoftBlocksTest, ProductsOfFourBits) {
  ExpectNear(ProductBy(""), {(1 - 4) - 70 + 0.5, 0.25});
  ExpectNear(ProductBy("zeros"), {(6 + 1) + 10 * (1 - 5) + 0.5, 0.25});
  ExpectNear(ProductBy("real_zeros"), {(1 - 4) + 10 * 0.5 + 0.5, 2 * (0.5 + 0.5) + 0.25});
}

// Group indices say which block's scale and zero point a column has: blocks 1, 0 and 1 for the
// columns 0, 1 and 16. In rows of 32 the indices of columns that fill a block are not looked at.
TEST(MicrosoftBlocksTest, ColumnsInBlocksThatGroupIndicesName) {
  for (const int64_t count : {17, 32}) {
    OnnxBuilder model = WithWeights();
    std::vector<int64_t> groups(count, 7);
    for (int i = 0; i < 17; ++i) groups[i] = i % 2;
    groups[0] = groups[16] = 1;
    groups[1] = 0;
    model.Input("x", {1, 17}).Integers("groups", groups);
    AddProduct(&model, {"x", "w", "s", "zeros", "groups"});
    Elements x(17, 0);
    x[0] = 1;
    x[1] = 100;
    x[16] = 10000;
    EXPECT_EQ(Computed(model, {{1, 17}}, {x})[0],
              (Elements{(9 - 5) * 10 + 100 * (4 - 3) + 10000 * (1 - 5) * 10.0, 0}));
  }
}

TEST(MicrosoftBlocksTest, RowsOfATable) {
  OnnxBuilder model(17);
  onnx::OperatorSetIdProto* opset = model.proto().add_opset_import();
  opset->set_domain("com.microsoft");
  opset->set_version(1);
  std::string bytes(16, '\x99');
  bytes[8] = 0x3a;
  model.Tensor("t", {2, 8}, onnx::TensorProto::UINT8)->set_raw_data(bytes);
  model.Floats("s", {2, 1}, {1, 2}).Input("i", {1}, onnx::TensorProto::INT64);
  model.Node("GatherBlockQuantized", {"t", "i", "s"}, {"y"}, {Int("block_size", 16)}).Output("y");
  model.graph().mutable_node(0)->set_domain("com.microsoft");
  Elements second(16, 2);
  second[0] = 4;
  second[1] = -10;
  EXPECT_EQ(Computed(model, {{1}}, {{1}})[0], second);
}

TEST(MicrosoftBlocksTest, Refusals) {
  const auto refused = [](const std::vector<std::string>& inputs,
                          std::vector<onnx::AttributeProto> attributes = {}) {
    OnnxBuilder model = WithWeights();
    model.Input("x", {1, 17}).Input("computed", {32}, onnx::TensorProto::UINT8);
    model.Integers("few", std::vector<int64_t>(16, 0));
    model.Integers("third", std::vector<int64_t>(17, 2));
    model.Integers("negative", std::vector<int64_t>(17, -1)).Floats("real", {17});
    AddProduct(&model, inputs, std::move(attributes));
    return BuiltText(model, {{1, 17}, {32}});
  };
  EXPECT_THAT(refused({"x", "w", "s"}, {Int("bits", 3)}),
              HasSubstr("weights of 3 bits; supported are 2, 4 and 8"));
  EXPECT_THAT(refused({"x", "w", "s"}, {Int("block_size", 24)}),
              HasSubstr("in blocks of 24; a block is a power of two from 16 on"));
  EXPECT_THAT(refused({"x", "w", "s"}, {Int("block_size", int64_t{1} << 62)}),
              HasSubstr("a block is a power of two from 16 on"));
  EXPECT_THAT(refused({"x", "w", "s"}, {Int("N", 3)}),
              HasSubstr("weights of dims [2,2,8], expected [3,16]"));
  EXPECT_THAT(refused({"x", "computed", "s"}), HasSubstr("weights that are computed at run time"));
  EXPECT_THAT(refused({"x", "w", "s", "", "computed"}),
              HasSubstr("group indices (g_idx) that are computed at run time"));
  for (const char* groups : {"few", "real"})
    EXPECT_THAT(refused({"x", "w", "s", "", groups}), HasSubstr(", expected 17 integers"));
  EXPECT_THAT(refused({"x", "w", "s", "", "third"}), HasSubstr("(g_idx) 2 of 2 blocks"));
  EXPECT_THAT(refused({"x", "w", "s", "", "negative"}), HasSubstr("(g_idx) -1 of 2 blocks"));
  EXPECT_THAT(refused({"x", "s", "s"}), HasSubstr("INVALID_ARGUMENT"));
}

}  // namespace
}  // namespace tilewire::reader
