// SPDX-License-Identifier: Apache-2.0
//
// Repositories written as Triton's users write them are served as they are, by the real engine, and
// `tilewire check` says of every setting what it does here. The ONNX files are made here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/engine.h"
#include "service/models/configured_warm_up.h"
#include "service/models/model_config.h"
#include "service/models/model_repository.h"
#include "tests/support/loaded_repository.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using tilewire::testing::IsOk;
using tilewire::testing::OnnxBuilder;

constexpr char kData[] = "tests/integration/triton_repositories";
constexpr auto kFloat = onnx::TensorProto::FLOAT;
constexpr auto kInt32 = onnx::TensorProto::INT32;
constexpr auto kInt64 = onnx::TensorProto::INT64;

struct Tensor {
  std::string name;
  onnx::TensorProto::DataType type;
  std::vector<int64_t> dims;  // of an output: without an open batch
};

struct Repository {
  const char *folder, *model;
  std::vector<Tensor> inputs, outputs;
  std::vector<int64_t> on_disk = {1}, served = {1};
  const char* file = "model.onnx";
};

std::vector<Repository> Repositories() {
  return {
      {"densenet_onnx",
       "densenet_onnx",
       {{"data_0", kFloat, {1, 3, 224, 224}}},
       {{"fc6_1", kFloat, {1, 1000, 1, 1}}}},
      {"inception_onnx",
       "inception_onnx",
       {{"input", kFloat, {-1, 299, 299, 3}}},
       {{"scores", kFloat, {1001}}}},
      {"dynamic_batching",
       "resnet50",
       {{"image", kFloat, {-1, 3, 224, 224}}},
       {{"logits", kFloat, {1000}}}},
      {"accelerators",
       "detector",
       {{"image", kFloat, {-1, 3, -1, -1}}},
       {{"boxes", kFloat, {100}}}},
      {"session_options", "tagger", {{"ids", kInt64, {-1, -1}}}, {{"tags", kFloat, {9}}}},
      {"specific_versions",
       "ranker",
       {{"features", kFloat, {-1, 40}}},
       {{"score", kFloat, {1}}},
       {1, 2, 3},
       {1, 3}},
      {"latest_versions",
       "ranker",
       {{"features", kFloat, {-1, 40}}},
       {{"score", kFloat, {1}}},
       {1, 2, 3},
       {2, 3}},
      {"warm_up",
       "embedder",
       {{"ids", kInt64, {-1, -1}}, {"mask", kInt64, {-1, -1}}},
       {{"vector", kFloat, {64}}}},
      {"priorities",
       "bert",
       {{"input_ids", kInt64, {-1, -1}}, {"attention_mask", kInt64, {-1, -1}}},
       {{"start", kFloat, {384}}, {"end", kFloat, {384}}}},
      {"auto_completed", "identity", {{"x", kFloat, {-1, 7}}}, {{"y", kFloat, {7}}}, {1, 2}, {2}},
      {"response_cache",
       "simple",
       {{"INPUT0", kInt32, {-1, 16}}, {"INPUT1", kInt32, {-1, 16}}},
       {{"OUTPUT0", kInt32, {16}}, {"OUTPUT1", kInt32, {16}}}},
      {"rate_limited", "scalar", {{"x", kFloat, {-1}}}, {{"y", kFloat, {3}}}, {1}, {1}, "net.onnx"},
  };
}

// Each output is the mean of the first input's rows, added to constants of the output's shape.
std::string ModelOf(const Repository& repository) {
  OnnxBuilder model(13);
  for (const Tensor& input : repository.inputs) model.Input(input.name, input.dims, input.type);
  model.Node("Cast", {repository.inputs[0].name}, {"floats"},
             {tilewire::testing::Int("to", kFloat)});
  model.Integers("rows", {0, -1});
  // A vector has rows of one element.
  model.Integers("column", {-1, 1});
  const bool is_vector = repository.inputs[0].dims.size() == 1;
  model.Node("Reshape", {"floats", is_vector ? "column" : "rows"}, {"flat"});
  model.Node("ReduceMean", {"flat"}, {"mean"}, {tilewire::testing::Ints("axes", {1})});
  for (const Tensor& output : repository.outputs) {
    model.Floats(output.name + "_shift", output.dims);
    model.Node("Add", {"mean", output.name + "_shift"}, {output.name + "_floats"});
    model.Node("Cast", {output.name + "_floats"}, {output.name},
               {tilewire::testing::Int("to", output.type)});
    model.Output(output.name, output.type);
  }
  return model.Serialize();
}

// The repository with its ONNX files.
fs::path Written(const Repository& repository) {
  const fs::path folder = fs::path(::testing::TempDir()) / repository.folder;
  fs::copy(fs::path(kData) / repository.folder, folder,
           fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  for (int64_t version : repository.on_disk) {
    const fs::path place = folder / repository.model / absl::StrCat(version);
    fs::create_directories(place);
    std::ofstream(place / repository.file, std::ios::binary) << ModelOf(repository);
  }
  return folder;
}

// The output of a command, and its exit status.
std::pair<std::string, int> RunCommand(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  char part[4096];
  for (size_t size; (size = fread(part, 1, sizeof(part), pipe)) > 0;) text.append(part, size);
  return {text, pclose(pipe)};
}

TEST(TritonRepositoriesTest, AreServedAsTheyAre) {
  const std::unique_ptr<Engine> engine = Engine::Create({.threads = 1}).value();
  for (const Repository& repository : Repositories()) {
    SCOPED_TRACE(repository.folder);
    const auto models = testing::OpenRepository(Written(repository).string(), engine.get());
    ASSERT_THAT(models.status(), IsOk());
    EXPECT_THAT((*models)->Versions(repository.model), ElementsAreArray(repository.served));
    for (const ModelRepository::Served& served : (*models)->All()) {
      ASSERT_EQ(served->state, ModelState::kReady) << ReasonOf(*served);
      EXPECT_THAT(RunConfiguredWarmUp(*served, {}), IsOk());
    }
  }
}

TEST(TritonRepositoriesTest, CheckExplainsEachSetting) {
  for (const Repository& repository : Repositories()) {
    SCOPED_TRACE(repository.folder);
    const fs::path folder = Written(repository);
    const auto [text, status] = RunCommand(absl::StrCat("client/tilewire check ", folder.string()));
    EXPECT_EQ(status, 0) << text;
    EXPECT_THAT(text, HasSubstr("1 of 1 models would be served"));
    const auto read =
        ReadSettings((folder / repository.model / "config.pbtxt").string(), repository.model);
    ASSERT_THAT(read.status(), IsOk());
    EXPECT_FALSE(read->settings.empty());
    for (const Setting& setting : read->settings) {
      EXPECT_NE(setting.effect, SettingClass::kUnknown) << setting.name;
      EXPECT_THAT(text, HasSubstr(absl::StrCat(setting.name, ": ", setting.text)));
    }
  }
}

TEST(TritonRepositoriesTest, CheckSaysWhatKeepsAModelOut) {
  const Repository repository = Repositories()[5];
  const fs::path folder = Written(repository);
  std::ofstream(folder / repository.model / "config.pbtxt")
      << "backend: 'python'\nfps: 3\nsequence_batching { }\n"
         "input { name: 'features' dims: [ 41 ] }\nversion_policy { all { } }\n";
  fs::create_directories(folder / "empty");
  const auto [text, status] = RunCommand(absl::StrCat("client/tilewire check ", folder.string()));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  for (const char* line :
       {"REFUSED  ranker version 3", "refused    backend: 'python' is not",
        "refused    sequence_batching: ", "unknown    fps: line 2: no such setting",
        "kept out   config.pbtxt: input 'features': its dims are not", "empty: skipped, ",
        "0 of 1 models would be served"})
    EXPECT_THAT(text, HasSubstr(line));
  const auto [json, again] =
      RunCommand(absl::StrCat("client/tilewire check --json ", folder.string()));
  EXPECT_EQ(WEXITSTATUS(again), 1);
  EXPECT_THAT(json, HasSubstr("\"kept_out\""));
}

}  // namespace
}  // namespace tilewire::service
