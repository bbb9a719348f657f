// SPDX-License-Identifier: Apache-2.0
//
// Files as exporters write them, and files that no exporter should write.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <random>

#include "engine/onnx/file/tensor_reader.h"
#include "tests/engine/onnx/fixture.h"
#include "tests/support/random_tensor.h"

namespace tilewire::reader {

using network::Convolution;
using network::InnerProduct;
using network::LoadElements;
using network::Network;
using network::Weights;
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using testing::RandomFloats;
using testing::WriteFile;

// Convolution with batch norm, residual and classifier: every part of the format that real files
// use.
OnnxBuilder SmallModel() {
  OnnxBuilder model;
  model.Input("x", {-1, 3, 6, 6}).Floats("w", {3, 3, 3, 3}).Floats("b", {3}).Floats("f", {3, 5});
  model.Node("Conv", {"x", "w", "b"}, {"c"}, {Ints("pads", {1, 1, 1, 1})})
      .Node("Add", {"c", "x"}, {"s"});
  model.Node("GlobalAveragePool", {"s"}, {"g"})
      .Node("Flatten", {"g"}, {"v"})
      .Node("MatMul", {"v", "f"}, {"y"});
  return model.Output("y");
}

// y = x * w for `w` of these dims.
OnnxBuilder ProductModel(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  OnnxBuilder model;
  model.Input("x", {-1, dims[0]}).Floats("w", dims, values);
  model.Node("MatMul", {"x", "w"}, {"y"});
  return model.Output("y");
}

TEST(ReadingTest, SignatureLeavesTheBatchOpen) {
  const auto model = Open(SmallModel());
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ((*model)->inputs()[0].dims, (Dims{-1, 3, 6, 6}));
  EXPECT_EQ((*model)->outputs()[0].dims, (Dims{-1, 5}));
  EXPECT_EQ((*model)->weights_bytes(), (81 + 3 + 15) * 4);
}

// A Reshape to one row: a batch of 2 has too many elements for it.
TEST(ReadingTest, AnOpenBatchThatFitsForOneOnlyIsOne) {
  OnnxBuilder flat;
  flat.Input("x", {-1, 3, 4}).Integers("row", {1, 12});
  flat.Node("Reshape", {"x", "row"}, {"y"}).Output("y");
  const auto alone = Open(flat);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ((*alone)->inputs()[0].dims, (Dims{1, 3, 4}));
  EXPECT_EQ((*alone)->outputs()[0].dims, (Dims{1, 12}));
  OnnxBuilder wide;  // other sizes stay open, and are found to change the output
  wide.Input("x", {-1, -1, 4}).Integers("one", {1}).Integers("row", {1, -1, 4});
  wide.graph()
      .mutable_input(0)
      ->mutable_type()
      ->mutable_tensor_type()
      ->mutable_shape()
      ->mutable_dim(1)
      ->set_dim_param("length");
  wide.Node("Split", {"x", "one"}, {"s"}).Node("Reshape", {"s", "row"}, {"y"}).Output("y");
  const auto open = Open(wide);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_EQ((*open)->inputs()[0].dims, (Dims{1, -1, 4}));
  EXPECT_EQ((*open)->outputs()[0].dims, (Dims{1, -1, 4}));
}

TEST(ReadingTest, FixedBatchStays) {
  OnnxBuilder model;
  model.Input("x", {1, 3}).Node("Relu", {"x"}, {"y"}).Output("y");
  const auto opened = Open(model);
  ASSERT_TRUE(opened.ok()) << opened.status();
  EXPECT_EQ((*opened)->outputs()[0].dims, (Dims{1, 3}));
  EXPECT_EQ((*opened)->Specialize({Dims{2, 3}}).status().message(),
            "input 'x': shape [2,3] does not match [1,3]");
}

TEST(ReadingTest, SpecializeRefusesWrongDims) {
  const auto model = Open(SmallModel());
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<std::vector<Dims>> wrong = {{},
                                                {{1, 3, 6, 6}, {1}},
                                                {{1, 3, 6}},
                                                {{0, 4, 6, 6}},
                                                {{-1, 3, 6, 6}},
                                                {{1, 4, 6, 6}},
                                                {{int64_t{1} << 62, 3, 6, 6}},
                                                {{int64_t{1} << 40, 3, 6, 6}}};
  for (const std::vector<Dims>& dims : wrong) {
    EXPECT_EQ((*model)->Specialize(dims).status().code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(ReadingTest, KeysAndWeightsAreTheSameForEveryBatch) {
  const auto model = Open(SmallModel());
  ASSERT_TRUE(model.ok()) << model.status();
  const Network one = *(*model)->Specialize({Dims{1, 3, 6, 6}});
  const Network eight = *(*model)->Specialize({Dims{8, 3, 6, 6}});
  const Weights& a = std::get<Convolution>(one.operations[0].params).weights;
  const Weights& b = std::get<Convolution>(eight.operations[0].params).weights;
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.data.data(), b.data.data());
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data.data()) % alignof(float), 0u);
}

// float_data packed and not, double_data, int32_data, int64_data and raw data give the same tensor.
TEST(ReadingTest, EveryWayToWriteATensor) {
  const std::vector<float> values = {1.5f, -2.0f, 3.25f};
  onnx::TensorProto packed;
  for (float value : values) packed.add_float_data(value);
  std::string unpacked;
  for (float value : values) {
    unpacked.push_back(4 << 3 | 5);
    unpacked.append(reinterpret_cast<const char*>(&value), 4);
  }
  onnx::TensorProto doubles, raw;
  for (float value : values) doubles.add_double_data(value);
  raw.set_raw_data(values.data(), 12);
  const std::string head("\x08\x03\x42\x01w", 5);  // dims 3, name w
  const std::string is_float("\x10\x01", 2), is_double("\x10\x0b", 2);
  for (const std::string& bytes :
       {head + is_float + packed.SerializeAsString(), head + is_float + unpacked,
        is_double + doubles.SerializeAsString() + head,
        raw.SerializeAsString() + head + is_float}) {
    MemorySource source(bytes);
    ByteWindow window(&source);
    const auto tensor = TensorReader("").Read(&window, 0, source.size());
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    EXPECT_EQ((*tensor)->name, "w");
    EXPECT_THAT((*tensor)->floats, ElementsAre(1.5f, -2.0f, 3.25f));
  }
  onnx::TensorProto ints;
  ints.add_dims(2);
  ints.set_data_type(onnx::TensorProto::INT32);
  ints.add_int32_data(-7);
  ints.add_int32_data(8);
  const std::string bytes = ints.SerializeAsString();
  MemorySource source(bytes);
  ByteWindow window(&source);
  EXPECT_THAT((*TensorReader("").Read(&window, 0, source.size()))->ints, ElementsAre(-7, 8));
}

TEST(ReadingTest, TruncatedAtEveryByte) {
  const std::string whole = SmallModel().Serialize();
  for (size_t size = 0; size < whole.size(); size += size < 64 ? 1 : 7) {
    const auto model = OpenBytes(whole.substr(0, size));
    if (model.ok()) ADD_FAILURE() << "opened with " << size << " of " << whole.size() << " bytes";
  }
}

TEST(ReadingTest, RandomBytesAndFlippedBytes) {
  std::mt19937 random(1);
  const std::string whole = SmallModel().Serialize();
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 500, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    EXPECT_FALSE(OpenBytes(bytes).ok());
    std::string flipped = whole;
    for (int i = 0; i < 3; ++i) flipped[random() % flipped.size()] = static_cast<char>(random());
    const auto model = OpenBytes(flipped);  // may open: a weight is as good as another
    EXPECT_LT(model.status().message().size(), 1000u);
  }
}

TEST(ReadingTest, NotAFile) {
  EXPECT_EQ(OnnxModel::Open(TemporaryPath("absent")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(OnnxModel::Open(TemporaryPath("")).status().code(), absl::StatusCode::kInvalidArgument);
  const std::string fifo = TemporaryPath("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(OnnxModel::Open(fifo).status().code(), absl::StatusCode::kInvalidArgument);
}

// Small weights are in memory once the model is open.
TEST(ReadingTest, SmallWeightsOutliveTheFile) {
  const auto model = Open(SmallModel());
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(truncate(TemporaryPath("model.onnx").c_str(), 0), 0);
  const Network network = *(*model)->Specialize({Dims{1, 3, 6, 6}});
  const Weights& weights = std::get<Convolution>(network.operations[0].params).weights;
  EXPECT_EQ(weights.stored, nullptr);
  EXPECT_EQ(static_cast<int64_t>(LoadElements(weights)->values.size()),
            *ElementCount(weights.dims));
}

// Large ones stay in the file, and are right or refused, whatever happens to it.
TEST(ReadingTest, LargeWeightsAreReadWhenWantedAndNeverFromAFileThatChanged) {
  const std::vector<float> values = RandomFloats(128 * 256, 7, -1, 1);
  const auto model = Open(ProductModel({128, 256}, values));
  ASSERT_TRUE(model.ok()) << model.status();
  const Network network = *(*model)->Specialize({Dims{1, 128}});
  const Weights& weights = std::get<InnerProduct>(network.operations[0].params).weights;
  ASSERT_NE(weights.stored, nullptr);
  EXPECT_TRUE(weights.data.empty());
  EXPECT_THAT(LoadElements(weights)->values, ElementsAreArray(values));
  ASSERT_EQ(truncate(TemporaryPath("model.onnx").c_str(), 100), 0);
  EXPECT_EQ(LoadElements(weights).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(LoadElements(weights).status().message()), HasSubstr("'w'"));
}

// Overwritten as `cp -p` does it: the same inode, size and time of modification.
TEST(ReadingTest, LargeWeightsAreNeverTakenFromAnotherFileWithTheSameTimes) {
  const std::vector<float> values = RandomFloats(128 * 256, 7, -1, 1);
  const std::string path = TemporaryPath("model.onnx");
  const auto model = Open(ProductModel({128, 256}, values));
  ASSERT_TRUE(model.ok()) << model.status();
  const Network network = *(*model)->Specialize({Dims{1, 128}});
  const Weights& weights = std::get<InnerProduct>(network.operations[0].params).weights;
  struct stat before;
  ASSERT_EQ(stat(path.c_str(), &before), 0);
  const auto overwrite = [&](const std::vector<float>& with) {
    WriteFile(path, ProductModel({128, 256}, with).Serialize());
    const timespec times[] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  };
  overwrite(RandomFloats(128 * 256, 8, -1, 1));
  EXPECT_EQ(LoadElements(weights).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ((*model)->CheckFiles().code(), absl::StatusCode::kFailedPrecondition);
  overwrite(values);
  EXPECT_TRUE((*model)->CheckFiles().ok()) << "it holds again what it held";
  EXPECT_THAT(LoadElements(weights)->values, ElementsAreArray(values));
}

TEST(ReadingTest, LargeWeightsSurviveTheDeletionOfTheirFile) {
  const std::vector<float> values = RandomFloats(128 * 256, 7, -1, 1);
  const auto model = Open(ProductModel({128, 256}, values));
  ASSERT_TRUE(model.ok()) << model.status();
  ASSERT_EQ(unlink(TemporaryPath("model.onnx").c_str()), 0);
  const Network network = *(*model)->Specialize({Dims{1, 128}});
  const Weights& weights = std::get<InnerProduct>(network.operations[0].params).weights;
  EXPECT_THAT(LoadElements(weights)->values, ElementsAreArray(values));
}

struct HostileCase {
  const char* why;
  void (*spoil)(OnnxBuilder*);
  absl::StatusCode code;
  const char* message;
};

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;

const HostileCase kHostile[] = {
    {"cycle",
     [](OnnxBuilder* m) {
       m->Node("Add", {"x", "q"}, {"p"}).Node("Relu", {"p"}, {"q"});
     },
     kInvalid, "cycle"},
    {"node that feeds itself", [](OnnxBuilder* m) { m->Node("Relu", {"p"}, {"p"}); }, kInvalid,
     "cycle"},
    {"dangling input", [](OnnxBuilder* m) { m->Node("Relu", {"nowhere"}, {"p"}); }, kInvalid,
     "'nowhere'"},
    {"dangling output", [](OnnxBuilder* m) { m->Output("nowhere"); }, kInvalid, "'nowhere'"},
    {"a tensor computed twice", [](OnnxBuilder* m) { m->Node("Relu", {"x"}, {"y"}); }, kInvalid,
     "'y' is defined twice"},
    {"an initializer twice", [](OnnxBuilder* m) { m->Floats("w", {1}); }, kInvalid,
     "'w' is defined twice"},
    {"an output twice", [](OnnxBuilder* m) { m->Output("y"); }, kInvalid, "'y' is named twice"},
    {"negative dims", [](OnnxBuilder* m) { m->Tensor("t", {-3}, onnx::TensorProto::FLOAT); },
     kInvalid, "'t'"},
    {"huge dims, little data",
     [](OnnxBuilder* m) {
       m->Tensor("t", {1 << 30, 1 << 20}, onnx::TensorProto::FLOAT)->set_raw_data("abcd");
     },
     kInvalid, "'t'"},
    {"dims that overflow",
     [](OnnxBuilder* m) {
       m->Tensor("t", {int64_t{1} << 40, int64_t{1} << 40}, onnx::TensorProto::FLOAT);
     },
     kInvalid, "overflow"},
    {"data longer than its dims",
     [](OnnxBuilder* m) {
       m->Tensor("t", {1}, onnx::TensorProto::FLOAT)->set_raw_data("abcdefgh");
     },
     kInvalid, "8 bytes"},
    {"raw and typed contents",
     [](OnnxBuilder* m) {
       onnx::TensorProto* t = m->Tensor("t", {1}, onnx::TensorProto::FLOAT);
       t->set_raw_data("abcd");
       t->add_float_data(1);
     },
     kInvalid, "both"},
    {"contents of the wrong type",
     [](OnnxBuilder* m) { m->Tensor("t", {1}, onnx::TensorProto::FLOAT)->add_int64_data(1); },
     kInvalid, "'t'"},
    {"strings", [](OnnxBuilder* m) { m->Tensor("t", {1}, onnx::TensorProto::STRING); },
     kUnimplemented, "'t'"},
    {"rank 100",
     [](OnnxBuilder* m) { m->Tensor("t", std::vector<int64_t>(100, 1), onnx::TensorProto::FLOAT); },
     kInvalid, "rank 100"},
    {"a number beyond f32",
     [](OnnxBuilder* m) {
       m->Tensor("far", {1}, onnx::TensorProto::DOUBLE)->add_double_data(1e200);
     },
     kUnimplemented, "tensor 'far' holds 1e+200, which is beyond f32"},
    {"foreign domain",
     [](OnnxBuilder* m) {
       m->Node("Relu", {"x"}, {"p"}).graph().mutable_node(5)->set_domain("com.example");
     },
     kUnimplemented, "com.example"},
    {"new opset", [](OnnxBuilder* m) { m->proto().mutable_opset_import(0)->set_version(99); },
     kUnimplemented, "99"},
    {"no such opset", [](OnnxBuilder* m) { m->proto().mutable_opset_import(0)->set_version(-1); },
     kUnimplemented, "opset -1"},
    {"no opset", [](OnnxBuilder* m) { m->proto().clear_opset_import(); }, kInvalid, "opset"},
    {"no graph", [](OnnxBuilder* m) { m->proto().clear_graph(); }, kInvalid, "no graph"},
    {"no output", [](OnnxBuilder* m) { m->graph().clear_output(); }, kInvalid, "no output"},
    {"input of integers that a convolution reads",
     [](OnnxBuilder* m) {
       m->graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
     },
     kUnimplemented, "takes s64 here"},
    {"input of strings",
     [](OnnxBuilder* m) {
       m->graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(8);
     },
     kUnimplemented, "input 'x' has ONNX element type STRING"},
    {"input of a type that is not ONNX's",
     [](OnnxBuilder* m) {
       m->graph().mutable_input(0)->mutable_type()->mutable_tensor_type()->set_elem_type(-99);
     },
     kUnimplemented, "input 'x' has ONNX element type number -99"},
    {"output of another type",
     [](OnnxBuilder* m) {
       m->graph().mutable_output(0)->mutable_type()->mutable_tensor_type()->set_elem_type(7);
     },
     kUnimplemented, "is declared s64"},
    {"halves with the bytes of floats",
     [](OnnxBuilder* m) {
       m->Tensor("t", {2}, onnx::TensorProto::FLOAT16)->set_raw_data("abcdefgh");
     },
     kInvalid, "raw_data of 8 bytes where the dims ask for 4"},
    {"halves as floats",
     [](OnnxBuilder* m) { m->Tensor("t", {1}, onnx::TensorProto::BFLOAT16)->add_float_data(1); },
     kInvalid, "'t': 0 elements"},
    {"an integer beyond s64",
     [](OnnxBuilder* m) {
       m->Tensor("t", {1}, onnx::TensorProto::UINT64)->add_uint64_data(~uint64_t{0});
     },
     kUnimplemented, "18446744073709551615, which is beyond s64"},
    {"negative input dims",
     [](OnnxBuilder* m) {
       m->graph()
           .mutable_input(0)
           ->mutable_type()
           ->mutable_tensor_type()
           ->mutable_shape()
           ->mutable_dim(0)
           ->set_dim_value(-5);
     },
     kInvalid, "-5"},
    {"a shape that explodes",
     [](OnnxBuilder* m) {
       std::string last = "y";
       for (int i = 0; i < 60; ++i) {
         const std::string next = "e" + std::to_string(i);
         m->Node("Concat", {last, last}, {next}, {testing::Int("axis", 1)});
         last = next;
       }
     },
     kInvalid, "too large"},
};

TEST(ReadingTest, HostileModelsAreRefusedByName) {
  for (const HostileCase& c : kHostile) {
    SCOPED_TRACE(c.why);
    OnnxBuilder model = SmallModel();
    c.spoil(&model);
    const absl::Status status = Open(model).status();
    EXPECT_EQ(status.code(), c.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.message));
    EXPECT_LT(status.message().size(), 1000u);
  }
}

TEST(ReadingTest, AnUnusedOptionalOutputIsNoReasonToRefuse) {
  OnnxBuilder model;
  model.Input("x", {1, 3}).Floats("c", {3}, {1, 2, 3});
  model.Node("BatchNormalization", {"x", "c", "c", "c", "c"}, {"y", "mean"}).Output("y");
  EXPECT_TRUE(Open(model).ok());
  model.Output("mean");
  EXPECT_EQ(Open(model).status().code(), kUnimplemented);
}

// A model whose weights lie beside it in "weights.bin" at offset 4.
OnnxBuilder ExternalModel(const std::string& location) {
  OnnxBuilder model;
  model.Input("x", {1, 2}).Node("MatMul", {"x", "w"}, {"y"}).Output("y");
  onnx::TensorProto* tensor = model.Tensor("w", {2, 1}, onnx::TensorProto::FLOAT);
  tensor->set_data_location(onnx::TensorProto::EXTERNAL);
  const std::vector<std::pair<std::string, std::string>> entries = {
      {"location", location}, {"offset", "4"}, {"length", "8"}};
  for (const auto& [key, value] : entries) {
    onnx::StringStringEntryProto* entry = tensor->add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  }
  return model;
}

TEST(ReadingTest, ExternalDataBesideTheModel) {
  const float values[] = {0, 5, 6};
  WriteFile(TemporaryPath("weights.bin"),
            std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  const auto model = Open(ExternalModel("weights.bin"));
  ASSERT_TRUE(model.ok()) << model.status();
  const Network network = *(*model)->Specialize({Dims{1, 2}});
  EXPECT_THAT(std::get<InnerProduct>(network.operations[0].params).weights.data, ElementsAre(5, 6));
}

TEST(ReadingTest, ExternalDataThatClimbsOut) {
  mkdir(TemporaryPath("folder").c_str(), 0700);
  WriteFile(TemporaryPath("outside.bin"), std::string(12, 'x'));
  WriteFile(TemporaryPath("short.bin"), std::string(8, 'x'));
  const std::string base = TemporaryPath("folder/");
  ASSERT_EQ(symlink(TemporaryPath("outside.bin").c_str(), (base + "symlink").c_str()), 0);
  ASSERT_EQ(symlink(TemporaryPath("").c_str(), (base + "up").c_str()), 0);
  ASSERT_EQ(link(TemporaryPath("outside.bin").c_str(), (base + "hardlink").c_str()), 0);
  ASSERT_EQ(mkfifo((base + "pipe").c_str(), 0600), 0);
  const std::string locations[] = {"../outside.bin",
                                   "/dev/zero",
                                   TemporaryPath("outside.bin"),
                                   "symlink",
                                   "up/outside.bin",
                                   "hardlink",
                                   "pipe",
                                   "",
                                   ".",
                                   "folder/../outside.bin",
                                   "a//b",
                                   "../short.bin"};
  for (const std::string& location : locations) {
    WriteFile(base + "model.onnx", ExternalModel(location).Serialize());
    const absl::Status status = OnnxModel::Open(base + "model.onnx").status();
    EXPECT_EQ(status.code(), kInvalid) << location << ": " << status;
  }
}

}  // namespace
}  // namespace tilewire::reader
