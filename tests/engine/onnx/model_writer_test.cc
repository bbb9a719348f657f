// SPDX-License-Identifier: Apache-2.0
//
// Model files written again: what differs from the file before, in every form in which a file can
// hold numbers, and what is left where that fails.
#include "engine/onnx/file/model_writer.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <optional>

#include "engine/onnx/file/new_file.h"
#include "tests/engine/onnx/fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::reader {

using testing::IsOk;
using testing::StatusIs;
using testing::WriteFile;
namespace {

using ::testing::ElementsAre;
using Code = absl::StatusCode;

std::string BytesOfFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder of its own for each case, empty at first.
std::string EmptyFolder(const std::string& name) {
  const std::string folder = TemporaryPath(name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  return folder + "/";
}

std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    names.push_back(std::filesystem::relative(entry.path(), folder).string());
  std::sort(names.begin(), names.end());
  return names;
}

std::shared_ptr<const OnnxModel> OpenIn(const std::string& folder, const OnnxBuilder& builder) {
  WriteFile(folder + "old.onnx", builder.Serialize());
  auto model = OnnxModel::Open(folder + "old.onnx", OpenedFor::kWriting);
  EXPECT_THAT(model, IsOk());
  return model.ok() ? *model : nullptr;
}

onnx::ModelProto Parsed(const std::string& path) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(BytesOfFile(path)));
  return model;
}

// y = x + w + u of [3]; `fill` puts the numbers into w.
OnnxBuilder SumModel(onnx::TensorProto::DataType type,
                     const std::function<void(onnx::TensorProto*)>& fill) {
  OnnxBuilder model;
  model.Input("x", {3}).Floats("before", {2, 2}).Floats("u", {3});
  fill(model.Tensor("w", {3}, type));
  const bool is_single = type == onnx::TensorProto::FLOAT;
  if (!is_single) model.Node("Cast", {"w"}, {"wide"}, {Int("to", onnx::TensorProto::FLOAT)});
  model.Node("Add", {"x", is_single ? "w" : "wide"}, {"a"}).Node("Add", {"a", "u"}, {"y"});
  return model.Output("y");
}

template <typename Element>
std::string RawBytes(std::initializer_list<Element> elements) {
  return {reinterpret_cast<const char*>(elements.begin()), elements.size() * sizeof(Element)};
}

struct StorageCase {
  const char* why;
  onnx::TensorProto::DataType type;
  std::function<void(onnx::TensorProto*)> old_numbers, new_numbers;
};

// The new numbers are 1.5, -2 and 65504; 1 is 0x3C00 in f16.
std::vector<StorageCase> StorageCases() {
  const auto raw = [](std::string bytes) {
    return [bytes](onnx::TensorProto* tensor) { tensor->set_raw_data(bytes); };
  };
  const auto ints = [](std::vector<int> bits) {
    return [bits](onnx::TensorProto* tensor) {
      tensor->mutable_int32_data()->Assign(bits.begin(), bits.end());
    };
  };
  const auto floats = [](std::vector<float> numbers) {
    return [numbers](onnx::TensorProto* tensor) {
      tensor->mutable_float_data()->Assign(numbers.begin(), numbers.end());
    };
  };
  const auto doubles = [](std::vector<double> numbers) {
    return [numbers](onnx::TensorProto* tensor) {
      tensor->mutable_double_data()->Assign(numbers.begin(), numbers.end());
    };
  };
  using onnx::TensorProto;
  return {
      {"raw f32", TensorProto::FLOAT, raw(RawBytes<float>({1, 2, 3})),
       raw(RawBytes<float>({1.5f, -2, 65504}))},
      {"float_data", TensorProto::FLOAT, floats({1, 2, 3}), floats({1.5f, -2, 65504})},
      {"raw f64", TensorProto::DOUBLE, raw(RawBytes<double>({1, 2, 3})),
       raw(RawBytes<double>({1.5, -2, 65504}))},
      {"double_data", TensorProto::DOUBLE, doubles({1, 2, 3}), doubles({1.5, -2, 65504})},
      {"raw f16", TensorProto::FLOAT16, raw(RawBytes<uint16_t>({1, 2, 3})),
       raw(RawBytes<uint16_t>({0x3E00, 0xC000, 0x7BFF}))},
      {"raw bf16", TensorProto::BFLOAT16, raw(RawBytes<uint16_t>({1, 2, 3})),
       raw(RawBytes<uint16_t>({0x3FC0, 0xC000, 0x4780}))},
      {"f16 as integers of other lengths", TensorProto::FLOAT16, ints({0, 1, 0x3C00}),
       ints({0x3E00, 0xC000, 0x7BFF})},
      {"bf16 as integers", TensorProto::BFLOAT16, ints({0x3F80, 0x3F80, 0x3F80}),
       ints({0x3FC0, 0xC000, 0x4780})},
  };
}

// A rename would put a file into the place of a device or a pipe, also where a link leads to it.
TEST(ModelWriterTest, OnlyRegularFilesAreReplaced) {
  const std::string folder = EmptyFolder("irregular");
  const auto model =
      OpenIn(folder, OnnxBuilder().Input("x", {1}).Node("Relu", {"x"}, {"y"}).Output("y"));
  ASSERT_NE(model, nullptr);
  ASSERT_EQ(mkfifo((folder + "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink("pipe", folder + "to_pipe");
  std::filesystem::create_symlink("/dev/null", folder + "to_null");
  std::filesystem::create_directory(folder + "taken");
  for (const char* name : {"pipe", "to_pipe", "to_null", "taken"}) {
    EXPECT_THAT(model->Write(folder + name, {}, {}),
                StatusIs(Code::kInvalidArgument, "is not a regular file, and would be replaced"));
  }
  EXPECT_THAT(model->Write("/dev/null", {}, {}),
              StatusIs(Code::kInvalidArgument, "'/dev/null' is not a regular file"));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 5);
  EXPECT_TRUE(std::filesystem::is_symlink(folder + "to_pipe"));
  EXPECT_TRUE(std::filesystem::is_fifo(folder + "pipe"));
}

TEST(ModelWriterTest, EveryFormOfNumbersChangesAndNothingElse) {
  const std::string folder = EmptyFolder("forms");
  const std::vector<float> numbers = {1.5f, -2, 65504};
  for (const StorageCase& c : StorageCases()) {
    SCOPED_TRACE(c.why);
    const auto model = OpenIn(folder, SumModel(c.type, c.old_numbers));
    ASSERT_NE(model, nullptr);
    const std::vector<NewElements> changed = {{"w", numbers}};
    ASSERT_THAT(model->Write(folder + "new.onnx", changed, {}), IsOk());
    EXPECT_EQ(BytesOfFile(folder + "new.onnx"), SumModel(c.type, c.new_numbers).Serialize());
    EXPECT_THAT(NamesIn(folder), ElementsAre("new.onnx", "old.onnx"));
    EXPECT_EQ(BytesOfFile(folder + "old.onnx"), SumModel(c.type, c.old_numbers).Serialize());
    EXPECT_THAT(OnnxModel::Open(folder + "new.onnx"), IsOk());
  }
}

// Elements with a tag each, as writers before proto3 have them, of a tensor between others.
TEST(ModelWriterTest, ElementsThatAreNotPacked) {
  const auto spaced = [](std::vector<float> numbers) {
    std::string tensor("\x08\x03\x10\x01", 4);  // dims 3, FLOAT
    for (float number : numbers) {
      tensor.push_back('\x25');
      tensor.append(reinterpret_cast<const char*>(&number), sizeof(number));
    }
    return tensor + std::string("\x42\x01w", 3);
  };
  const auto model_of = [&](const std::vector<float>& numbers) {
    OnnxBuilder builder;
    builder.Input("x", {3}).Node("Add", {"x", "w"}, {"y"}).Output("y");
    const std::string graph = builder.graph().SerializeAsString(), tensor = spaced(numbers);
    builder.proto().clear_graph();
    std::string whole = graph + '\x2A' + static_cast<char>(tensor.size()) + tensor;
    std::string model = builder.Serialize() + '\x3A';
    model += static_cast<char>(whole.size());
    EXPECT_LT(whole.size(), 128u);
    return model + whole;
  };
  const std::string folder = EmptyFolder("spaced");
  WriteFile(folder + "old.onnx", model_of({1, 2, 3}));
  const auto model = OnnxModel::Open(folder + "old.onnx", OpenedFor::kWriting);
  ASSERT_THAT(model, IsOk());
  const std::vector<float> numbers = {4, 5, 6};
  ASSERT_THAT((*model)->Write(folder + "new.onnx", {{NewElements{"w", numbers}}}, {}), IsOk());
  EXPECT_EQ(BytesOfFile(folder + "new.onnx"), model_of({4, 5, 6}));
}

TEST(ModelWriterTest, ATensorOfAConstantNodeAndOneInASubgraph) {
  const auto model_of = [](float first) {
    OnnxBuilder body, other, model;
    body.Floats("w", {2}, {7, 8}).Node("Add", {"x", "w"}, {"then"}).Output("then");
    other.Node("Identity", {"x"}, {"else"}).Output("else");
    onnx::AttributeProto graphs[] = {
        testing::Attribute("then_branch", onnx::AttributeProto::GRAPH),
        testing::Attribute("else_branch", onnx::AttributeProto::GRAPH)};
    *graphs[0].mutable_g() = body.graph();
    *graphs[1].mutable_g() = other.graph();
    onnx::AttributeProto value = testing::Attribute("value", onnx::AttributeProto::TENSOR);
    value.mutable_t()->set_data_type(onnx::TensorProto::FLOAT);
    value.mutable_t()->add_dims(2);
    value.mutable_t()->set_raw_data(RawBytes<float>({first, 2}));
    model.Input("x", {2}).Tensor("c", {}, onnx::TensorProto::BOOL)->add_int32_data(1);
    model.Node("If", {"c"}, {"i"}, {graphs[0], graphs[1]}).Node("Constant", {}, {"k"}, {value});
    model.Node("Add", {"i", "k"}, {"y"}).Output("y");
    return model;
  };
  const std::string folder = EmptyFolder("constants");
  const auto model = OpenIn(folder, model_of(1));
  ASSERT_NE(model, nullptr);
  const std::vector<float> numbers = {9, 2};
  ASSERT_THAT(model->Write(folder + "new.onnx", {{NewElements{"k", numbers}}}, {}), IsOk());
  EXPECT_EQ(BytesOfFile(folder + "new.onnx"), model_of(9).Serialize());
  EXPECT_THAT(model->Write(folder + "other.onnx", {{NewElements{"w", numbers}}}, {}),
              StatusIs(Code::kInvalidArgument, "no initializer 'w'"));
}

TEST(ModelWriterTest, MetadataIsAppendedAndReplacesItsKeys) {
  const std::string folder = EmptyFolder("metadata");
  const OnnxBuilder builder = SumModel(onnx::TensorProto::FLOAT, [](onnx::TensorProto* tensor) {
    tensor->set_raw_data(RawBytes<float>({1, 2, 3}));
  });
  const auto entry = [](const std::string& key, const std::string& value) {
    const std::string pair = '\x0A' + std::string(1, static_cast<char>(key.size())) + key + '\x12' +
                             std::string(1, static_cast<char>(value.size())) + value;
    return '\x72' + std::string(1, static_cast<char>(pair.size())) + pair;
  };
  const auto model = OpenIn(folder, builder);
  ASSERT_NE(model, nullptr);
  ASSERT_THAT(model->Write(folder + "1.onnx", {}, {{"parent", "7"}, {"seed", ""}}), IsOk());
  EXPECT_EQ(BytesOfFile(folder + "1.onnx"),
            builder.Serialize() + entry("parent", "7") + entry("seed", ""));
  const auto again = OnnxModel::Open(folder + "1.onnx", OpenedFor::kWriting);
  ASSERT_THAT(again, IsOk());
  ASSERT_THAT((*again)->Write(folder + "2.onnx", {}, {{"parent", "8"}}), IsOk());
  EXPECT_EQ(BytesOfFile(folder + "2.onnx"),
            builder.Serialize() + entry("seed", "") + entry("parent", "8"));
}

// w at byte 4 of parts/weights.bin, and v at byte 16.
OnnxBuilder TwoExternalTensors() {
  OnnxBuilder model;
  model.Input("x", {2}).Node("Add", {"x", "w"}, {"a"}).Node("Mul", {"a", "v"}, {"y"}).Output("y");
  const std::pair<const char*, const char*> places[] = {{"w", "4"}, {"v", "16"}};
  for (const auto& [name, offset] : places) {
    onnx::TensorProto* tensor = model.Tensor(name, {2}, onnx::TensorProto::FLOAT);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    const std::pair<const char*, const char*> entries[] = {
        {"location", "parts/weights.bin"}, {"offset", offset}, {"length", "8"}};
    for (const auto& [key, value] : entries) {
      onnx::StringStringEntryProto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
  }
  return model;
}

// Whether a child that mounts `file` over itself finds it refused; nullopt where it may not mount,
// or where the system does not tell of mount points.
std::optional<bool> RefusedWhereMounted(const std::string& file) {
  constexpr int kMayNotMount = 2;
  const pid_t child = fork();
  if (child == 0) {
    const char* const path = file.c_str();
    const bool is_mounted = unshare(CLONE_NEWNS) == 0 &&
                            mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                            mount(path, path, nullptr, MS_BIND, nullptr) == 0;
    struct statx there;
    const bool is_told = is_mounted && statx(AT_FDCWD, path, 0, STATX_TYPE, &there) == 0 &&
                         (there.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0;
    if (!is_told) _exit(kMayNotMount);
    _exit(absl::IsFailedPrecondition(NewFile::CheckPlace(file)) ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kMayNotMount) return std::nullopt;
  return WEXITSTATUS(status) == 1;
}

TEST(ModelWriterTest, AMountPointIsRefusedBeforeAnythingIsWritten) {
  const std::string file = EmptyFolder("mounted") + "new.onnx";
  WriteFile(file, "old");
  EXPECT_THAT(NewFile::CheckPlace(file), IsOk());
  const std::optional<bool> refused = RefusedWhereMounted(file);
  if (!refused) GTEST_SKIP() << "mount points cannot be made, or are not told of";
  EXPECT_TRUE(*refused);
}

TEST(ModelWriterTest, ExternalDataIsWrittenBesideTheNewFile) {
  const std::string folder = EmptyFolder("external"), target = EmptyFolder("external_new");
  std::filesystem::create_directory(folder + "parts");
  const std::string old_bytes = RawBytes<float>({0, 1, 2, 3, 4, 5, 6});
  WriteFile(folder + "parts/weights.bin", old_bytes);
  const auto model = OpenIn(folder, TwoExternalTensors());
  ASSERT_NE(model, nullptr);
  const std::vector<float> numbers = {-1, -2};
  const std::vector<NewElements> changed = {{"w", numbers}};
  ASSERT_THAT(model->CheckPlaces(target + "new.onnx"), IsOk());
  ASSERT_THAT(model->Write(target + "new.onnx", changed, {}), IsOk());
  EXPECT_EQ(BytesOfFile(target + "new.onnx"), TwoExternalTensors().Serialize());
  EXPECT_EQ(BytesOfFile(target + "parts/weights.bin"), RawBytes<float>({0, -1, -2, 3, 4, 5, 6}));
  EXPECT_EQ(BytesOfFile(folder + "parts/weights.bin"), old_bytes);

  EXPECT_THAT(model->Write(folder + "new.onnx", changed, {}),
              StatusIs(Code::kAlreadyExists, "parts/weights.bin"));
  EXPECT_THAT(model->Write(target + "other.onnx", changed, {}),
              StatusIs(Code::kAlreadyExists, "parts/weights.bin"));
  EXPECT_THAT(model->Write(folder + "parts/weights.bin", changed, {}),
              StatusIs(Code::kInvalidArgument, "a place of external data"));
  // Told before anything is trained, too.
  for (const std::string& taken : {folder, target}) {
    EXPECT_THAT(model->CheckPlaces(taken + "other.onnx"),
                StatusIs(Code::kAlreadyExists, "choose a folder without it"));
  }
  EXPECT_THAT(NamesIn(folder), ElementsAre("old.onnx", "parts", "parts/weights.bin"));
  EXPECT_THAT(NamesIn(target), ElementsAre("new.onnx", "parts", "parts/weights.bin"));
}

OnnxBuilder RawSumModel() {
  return SumModel(onnx::TensorProto::FLOAT, [](onnx::TensorProto* tensor) {
    tensor->set_raw_data(RawBytes<float>({1, 2, 3}));
  });
}

TEST(ModelWriterTest, RefusesWhatDoesNotFitTheFile) {
  const std::string folder = EmptyFolder("misfits");
  const auto model = OpenIn(folder, RawSumModel());
  ASSERT_NE(model, nullptr);
  const std::vector<float> three = {1, 2, 3}, two = {1, 2};
  const struct {
    std::string path;
    std::vector<NewElements> changed;
    const char* message;
  } kCases[] = {
      {folder + "new.onnx", {{"q", three}}, "no initializer 'q'"},
      {folder + "new.onnx", {{"w", two}}, "tensor 'w' has 3 elements, not 2"},
      {folder + "new.onnx", {{"w", three}, {"w", three}}, "tensor 'w' is given twice"},
      {folder + "old.onnx", {}, "is the file that the model was read from"},
      {folder + "nowhere/new.onnx", {}, "cannot write"},
      {folder, {}, "is not a file's path"},
      {"", {}, "is not a file's path"},
  };
  for (const auto& c : kCases)
    EXPECT_THAT(model->Write(c.path, c.changed, {}), StatusIs(Code::kInvalidArgument, c.message));
  std::filesystem::create_directory(folder + "taken");
  EXPECT_THAT(model->Write(folder + "taken", {}, {}), StatusIs(Code::kInvalidArgument, "taken"));
  EXPECT_THAT(NamesIn(folder), ElementsAre("old.onnx", "taken"));
  const auto only_run = OnnxModel::Open(folder + "old.onnx");
  ASSERT_THAT(only_run, IsOk());
  EXPECT_THAT((*only_run)->Write(folder + "new.onnx", {}, {}),
              StatusIs(Code::kFailedPrecondition, "was not opened to be written"));

  const auto halves = OpenIn(folder, SumModel(onnx::TensorProto::FLOAT16, [](auto* tensor) {
                               tensor->set_raw_data(RawBytes<uint16_t>({1, 2, 3}));
                             }));
  ASSERT_NE(halves, nullptr);
  const std::vector<float> large = {1, 70000, 2};
  EXPECT_THAT(halves->Write(folder + "new.onnx", {{NewElements{"w", large}}}, {}),
              StatusIs(Code::kInvalidArgument, "element 1 is 70000, which f16 does not hold"));
  OnnxBuilder bytes;
  bytes.Input("x", {3}, onnx::TensorProto::INT8).Bytes("w", {3}, true);
  bytes.Node("Add", {"x", "w"}, {"y"}).Output("y", onnx::TensorProto::INT8);
  const auto integers = OpenIn(folder, bytes);
  ASSERT_NE(integers, nullptr);
  EXPECT_THAT(integers->Write(folder + "new.onnx", {{NewElements{"w", three}}}, {}),
              StatusIs(Code::kInvalidArgument, "'w' is of INT8"));
  EXPECT_THAT(NamesIn(folder), ElementsAre("old.onnx", "taken"));
}

TEST(ModelWriterTest, RefusesAFileThatWasWrittenToSinceItWasOpened) {
  const std::string folder = EmptyFolder("changed");
  const auto model = OpenIn(folder, RawSumModel());
  ASSERT_NE(model, nullptr);
  std::string bytes = RawSumModel().Serialize();
  WriteFile(folder + "old.onnx", bytes + std::string("\x28\x01", 2));  // model_version 1
  EXPECT_THAT(model->Write(folder + "new.onnx", {}, {}),
              StatusIs(Code::kFailedPrecondition, "was written to since it was opened"));
  EXPECT_THAT(NamesIn(folder), ElementsAre("old.onnx"));
}

TEST(ModelWriterTest, NothingIsLeftWhereThereIsNoSpace) {
  const std::string folder = EmptyFolder("full"), target = EmptyFolder("full_new");
  std::filesystem::create_directory(folder + "parts");
  WriteFile(folder + "parts/weights.bin", RawBytes<float>({0, 1, 2, 3, 4, 5, 6}));
  OnnxBuilder builder = TwoExternalTensors();
  builder.proto().set_producer_name(std::string(8192, 'p'));
  const auto model = OpenIn(folder, builder);
  ASSERT_NE(model, nullptr);
  struct rlimit limit = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlim_t old_limit = limit.rlim_cur;
  signal(SIGXFSZ, SIG_IGN);
  limit.rlim_cur = 4096;  // enough for the external data, not for the model's file
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const absl::Status status = model->Write(target + "new.onnx", {}, {});
  limit.rlim_cur = old_limit;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THAT(status, StatusIs(Code::kResourceExhausted, "cannot write"));
  EXPECT_THAT(NamesIn(target), ElementsAre());
}

TEST(ModelWriterTest, AFileThatIsThereIsReplacedAtOnce) {
  const std::string folder = EmptyFolder("replaced");
  const auto model = OpenIn(folder, RawSumModel());
  ASSERT_NE(model, nullptr);
  WriteFile(folder + "new.onnx", "something else");
  const std::vector<float> numbers = {4, 5, 6};
  EXPECT_THAT(model->Write(folder + "new.onnx", {{NewElements{"w", {numbers.data(), 2}}}}, {}),
              StatusIs(Code::kInvalidArgument, "3 elements"));
  EXPECT_EQ(BytesOfFile(folder + "new.onnx"), "something else");
  EXPECT_THAT(model->Write(folder + "new.onnx", {{NewElements{"w", numbers}}}, {}), IsOk());
  EXPECT_EQ(Parsed(folder + "new.onnx").graph().initializer(2).raw_data(),
            RawBytes<float>({4, 5, 6}));
}

}  // namespace
}  // namespace tilewire::reader
