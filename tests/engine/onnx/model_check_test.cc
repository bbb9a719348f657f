// SPDX-License-Identifier: Apache-2.0
//
// The check of a file before it is served: it names everything that the file lacks at once, and
// tells what a file is that is not ONNX.
#include "engine/onnx/model_check.h"

#include "tests/engine/onnx/fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::reader {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

ModelCheck CheckBytes(const std::string& bytes) {
  const std::string path = TemporaryPath("checked.onnx");
  testing::WriteFile(path, bytes);
  return CheckModel(path);
}

TEST(ModelCheckTest, NamesOfOpenDimensionsAndSizesThatReadingFinds) {
  OnnxBuilder model;
  model.Input("x", {-1, 3, 8, 8}).Floats("w", {4, 3, 3, 3});
  model.Node("Conv", {"x", "w"}, {"y"}).Output("y");
  const ModelCheck check = CheckBytes(model.Serialize());
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_THAT(check.lacks, IsEmpty());
  EXPECT_EQ(check.opset, 13);
  EXPECT_EQ(check.nodes, 1);
  EXPECT_EQ(check.weights_bytes, 4 * 27 * 4);
  ASSERT_EQ(check.inputs.size(), 1);
  EXPECT_EQ(check.inputs[0].type, "FP32");
  EXPECT_THAT(check.inputs[0].dims, ElementsAre("open", "3", "8", "8"));
  ASSERT_EQ(check.outputs.size(), 1);
  EXPECT_THAT(check.outputs[0].dims, ElementsAre("?", "4", "6", "6"));
}

TEST(ModelCheckTest, NodesOfOtherDomainsAreNamedWithoutAnOpsetOfOnnx) {
  OnnxBuilder model;
  model.Input("x", {1, 4}).Node("TreeEnsembleRegressor", {"x"}, {"y"}).Output("y");
  model.graph().mutable_node(0)->set_domain("ai.onnx.ml");
  model.proto().mutable_opset_import(0)->set_domain("ai.onnx.ml");
  model.proto().mutable_opset_import(0)->set_version(3);
  const ModelCheck check = CheckBytes(model.Serialize());
  EXPECT_EQ(check.opset, 0);
  EXPECT_THAT(check.lacks,
              ElementsAre(HasSubstr("(TreeEnsembleRegressor of ai.onnx.ml, opset 3): this op")));
}

TEST(ModelCheckTest, EverythingThatIsMissingAtOnce) {
  OnnxBuilder model(99);
  model.Input("x", {1, 4}).Input("words", {1}, onnx::TensorProto::STRING);
  model.Tensor("c", {2}, onnx::TensorProto::COMPLEX64);
  model.Node("Unheard", {"x"}, {"a"}).Node("Unheard", {"a"}, {"b"}).Node("Unheard", {"b"}, {"c1"});
  model.Node("Other", {"c1", "c"}, {"d"}).Node("Relu", {"d"}, {"y"}, {Int("alpha", 1)});
  model.Output("y").Output("d", onnx::TensorProto::COMPLEX128);
  const ModelCheck check = CheckBytes(model.Serialize());
  EXPECT_EQ(check.status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(check.lacks,
              ElementsAre(HasSubstr("'c' has ONNX element type COMPLEX64"),
                          HasSubstr("opset 99 of domain 'ai.onnx'; supported are 1 to"),
                          HasSubstr("input 'words' has ONNX element type STRING"),
                          AllOf(HasSubstr("node 'node_a' (Unheard"), HasSubstr("(so for 3 nodes)")),
                          HasSubstr("node 'node_d' (Other"), HasSubstr("unknown attribute 'alpha'"),
                          HasSubstr("output 'd' has ONNX element type COMPLEX128")));
  for (const std::string& lack : check.lacks)
    EXPECT_THAT(std::string(check.status.message()), HasSubstr(lack));
  ASSERT_EQ(check.inputs.size(), 2);
  EXPECT_EQ(check.inputs[1].type, "STRING");
}

TEST(ModelCheckTest, UsesThatAreMissingAreAllNamedToo) {
  OnnxBuilder model;
  model.Input("x", {2, 4, 1})
      .Node("QuantizeLinear", {"x", "x"}, {"a"}, {Int("precision", 10)})
      .Node("Relu", {"a"}, {"b"});
  model.Node("QuantizeLinear", {"x", "x"}, {"c"}, {Int("precision", 16)}).Output("b").Output("c");
  EXPECT_THAT(CheckBytes(model.Serialize()).lacks,
              ElementsAre(HasSubstr("node 'node_a'"), HasSubstr("node 'node_c'")));
}

// The signal has neither one part nor two, however long it is.
TEST(ModelCheckTest, ShapesThatCannotFitAreNoted) {
  OnnxBuilder model(17);
  model.Input("x", {-1, -1, 3}).Integers("step", {4}).Integers("length", {8});
  model.Node("STFT", {"x", "step", "", "length"}, {"y"}).Output("y");
  const ModelCheck check = CheckBytes(model.Serialize());
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_THAT(check.unfit, testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                             "neither of real nor of complex numbers"));
  OnnxBuilder fitting(17);
  fitting.Input("x", {-1, -1, 1}).Integers("step", {4}).Integers("length", {8});
  fitting.Node("STFT", {"x", "step", "", "length"}, {"y"}).Output("y");
  EXPECT_TRUE(CheckBytes(fitting.Serialize()).unfit.ok());
}

// The mode of one node is an initializer, of the other a Constant node; a ratio of 0 drops nothing.
TEST(ModelCheckTest, NodesThatServeAsTheyTrainAreNamed) {
  OnnxBuilder model(15);
  model.Input("x", {-1, 3, 4, 4}).Floats("c", {3}).Floats("none", {}, {0});
  model.Tensor("on", {}, onnx::TensorProto::BOOL)->set_raw_data("\1");
  onnx::AttributeProto mode = testing::Attribute("value", onnx::AttributeProto::TENSOR);
  mode.mutable_t()->set_data_type(onnx::TensorProto::BOOL);
  mode.mutable_t()->set_raw_data("\1");
  model.Node("Constant", {}, {"on too"}, {mode});
  model.Node("Dropout", {"x", "", "on"}, {"a"}).Node("Dropout", {"a", "", "on too"}, {"b"});
  model.Node("Dropout", {"b"}, {"d"}).Node("Dropout", {"d", "none", "on"}, {"e"});
  model.Node("BatchNormalization", {"e", "c", "c", "c", "c"}, {"f", "", ""},
             {Int("training_mode", 1)});
  model.Node("BatchNormalization", {"f", "c", "c", "c", "c"}, {"y"}).Output("y");
  const ModelCheck check = CheckBytes(model.Serialize());
  EXPECT_TRUE(check.status.ok()) << check.status;
  EXPECT_THAT(check.leftovers,
              ElementsAre(HasSubstr("true in 2 Dropout nodes (the first is 'node_a')"),
                          HasSubstr("is 1 in 1 BatchNormalization node ('node_f')")));
}

TEST(ModelCheckTest, TypesThatAreNotServedHaveTheirNames) {
  const struct {
    int number;
    const char* name;
  } kTypes[] = {
      {17, "FLOAT8E4M3FN"}, {21, "UINT4"}, {22, "INT4"}, {23, "FLOAT4E2M1"}, {26, "INT2"}};
  for (const auto& type : kTypes) {
    OnnxBuilder model(21);
    model.Input("x", {2}, static_cast<onnx::TensorProto::DataType>(type.number));
    model.Input("r", {2}).Node("Cast", {"r"}, {"y"}, {Int("to", type.number)}).Output("y");
    const ModelCheck check = CheckBytes(model.Serialize());
    EXPECT_EQ(check.inputs[0].type, type.name);
    EXPECT_THAT(check.lacks, ElementsAre(HasSubstr(type.name)));
  }
}

TEST(ModelCheckTest, NamesInFilesAreOneLine) {
  OnnxBuilder model;
  model.Input("x", {2}).Node("Unheard\n\x1b[2J", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(CheckBytes(model.Serialize()).lacks, ElementsAre(HasSubstr("(Unheard??[2J of")));
}

// Clients are told of them, in strings that must be UTF-8.
TEST(ModelCheckTest, NamesInFilesAreUtf8) {
  OnnxBuilder of_output, of_operator, of_mode, in_chinese;
  of_output.Input("x", {2}).Node("Relu", {"x"}, {"caf\xe9"}).Output("caf\xe9");
  EXPECT_THAT(CheckBytes(of_output.Serialize()).lacks,
              ElementsAre(HasSubstr("the name 'caf?' is not UTF-8")));
  of_operator.Input("x", {2}).Node("Pad\xe9", {"x"}, {"y"}).Output("y");
  EXPECT_THAT(CheckBytes(of_operator.Serialize()).lacks, ElementsAre(HasSubstr("'Pad?'")));
  of_mode.Input("x", {2, 2, 2}).Node("LSTM", {"x", "x", "x"}, {"y"}, {String("direction", "\xe9")});
  EXPECT_THAT(CheckBytes(of_mode.Output("y").Serialize()).lacks, Each(Not(HasSubstr("\xe9"))));
  in_chinese.Input("x", {2}).Node("Relu", {"x"}, {"\u4e2d"}).Output("\u4e2d");
  EXPECT_THAT(CheckBytes(in_chinese.Serialize()).lacks, IsEmpty());
}

TEST(ModelCheckTest, TheListEndsByTellingThatThereAreMore) {
  OnnxBuilder model;
  model.Input("x", {2});
  for (int i = 0; i < 60; ++i)
    model.Node(absl::StrCat("Unheard", i), {"x"}, {absl::StrCat("y", i)});
  const ModelCheck check = CheckBytes(model.Output("y0").Serialize());
  ASSERT_EQ(check.lacks.size(), 51u);
  EXPECT_THAT(check.lacks[49], HasSubstr("Unheard49"));
  EXPECT_EQ(check.lacks[50], "further reasons are not listed");
}

TEST(ModelCheckTest, OtherFormatsAreNamed) {
  const struct {
    std::string bytes, named;
  } kCases[] = {
      {std::string("\x80\x04\x95\x10\x00", 5), "a Python pickle"},
      {"\x89PNG\r\n\x1a\n", "a PNG picture"},
      {"\xff\xd8\xff\xe0", "a JPEG picture"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 97\n", "git lfs pull"},
      {std::string("PK\x03\x04\x00\x00", 6) + "resnet/data.pkl", "PyTorch"},
      {std::string("PK\x03\x04\x00\x00", 6) + "metadata.json", "Keras"},
      {std::string("PK\x03\x04\x00\x00", 6) + "model.onnx", "a zip archive"},
      {std::string("\x1c\x00\x00\x00TFL3", 8), "TensorFlow Lite"},
      {std::string("\x1c\x00\x00\x00ORTM", 8), "ORT format"},
      {std::string("\x40\x00\x00\x00\x00\x00\x00\x00{\"__metadata__\"", 24), "safetensors"},
      {"\x89HDF\r\n\x1a\n", "Keras writes it"},
      {"<?xml version=\"1.0\"?>", "OpenVINO"},
      {"<!DOCTYPE html><html>", "a web page"},
      {std::string("\x08\x01\x12\x09\x0a\x07") + "\x22\x05serve", "SavedModel"},
  };
  for (const auto& [bytes, named] : kCases) {
    SCOPED_TRACE(named);
    const ModelCheck check = CheckBytes(bytes);
    EXPECT_EQ(check.status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(check.lacks, ElementsAre(AllOf(HasSubstr("not an ONNX file"), HasSubstr(named))));
  }
  EXPECT_THAT(CheckBytes("nothing of all that").lacks,
              ElementsAre(Not(HasSubstr("not an ONNX file"))));
}

}  // namespace
}  // namespace tilewire::reader
