// SPDX-License-Identifier: Apache-2.0
//
// The values that --model takes: files and folders, with and without names.
#include "service/models/named_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "service/models/file_stamp.h"
#include "service/models/model_load.h"
#include "service/models/repository_scan.h"
#include "tests/support/echo_repository.h"
#include "tests/support/fake_engine.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NamedModelsTest : public ::testing::Test {
 protected:
  // "name:version:path", sorted, with paths below the test's folder; or the error's code.
  std::string Scan(const std::vector<NamedModel>& models) {
    std::vector<NamedModel> below = models;
    for (NamedModel& model : below) model.path = (folder_ / model.path).string();
    const auto found = ScanNamed(below, {.latest = 0});
    if (!found.ok()) return absl::StatusCodeToString(found.status().code());
    return absl::StrJoin(*found, " ", [this](std::string* out, const ServedModel& served) {
      absl::StrAppend(out, served.name, ":", served.version, ":",
                      std::filesystem::relative(served.path, folder_).string());
    });
  }

  const std::filesystem::path folder_ = testing::WriteEchoRepository();  // with echo/1 and echo/2
};

TEST(ParseNamedModel, ANameHoldsNoSlash) {
  const struct {
    const char *text, *name, *path;
  } rows[] = {{"net.onnx", "", "net.onnx"},       {"cats=net.onnx", "cats", "net.onnx"},
              {"cats=/m/a=b", "cats", "/m/a=b"},  {"./a=b.onnx", "", "./a=b.onnx"},
              {"/mnt/models", "", "/mnt/models"}, {"cats=", "cats", ""}};
  for (const auto& row : rows) {
    const NamedModel model = ParseNamedModel(row.text);
    EXPECT_EQ(model.name, row.name) << row.text;
    EXPECT_EQ(model.path, row.path) << row.text;
  }
}

TEST_F(NamedModelsTest, AFileIsNamedByItsPathOrAsAsked) {
  testing::WriteFile(folder_ / "net.onnx", "");
  EXPECT_EQ(Scan({{"", "net.onnx"}}), "net:1:net.onnx");
  EXPECT_EQ(Scan({{"cats", "net.onnx"}, {"all", "net.onnx"}}), "all:1:net.onnx cats:1:net.onnx");
  EXPECT_EQ(Scan({{"", "echo/2/model.onnx"}}), "echo:2:echo/2/model.onnx");
  EXPECT_EQ(Scan({{"cats", "echo/2/model.onnx"}}), "cats:2:echo/2/model.onnx");
  EXPECT_EQ(Scan({{"", "none.onnx"}}), "NOT_FOUND");
}

TEST_F(NamedModelsTest, AFolderOfVersionsIsOneModel) {
  EXPECT_EQ(Scan({{"", "echo"}}), "echo:1:echo/1/model.onnx echo:2:echo/2/model.onnx");
  EXPECT_EQ(Scan({{"cats", "echo/"}}), "cats:1:echo/1/model.onnx cats:2:echo/2/model.onnx");
  EXPECT_EQ(Scan({{"", "echo/2"}}), "echo:2:echo/2/model.onnx") << "one of its versions";
}

TEST_F(NamedModelsTest, AFolderWithAFileIsOneModel) {
  testing::WriteFile(folder_ / "flat/net.onnx", "");
  EXPECT_EQ(Scan({{"", "flat"}}), "flat:1:flat/net.onnx");
  testing::WriteFile(folder_ / "flat/other.onnx", "");
  EXPECT_EQ(Scan({{"", "flat"}}), "INVALID_ARGUMENT") << "which of the two?";
  testing::WriteFile(folder_ / "flat/model.onnx", "");
  EXPECT_EQ(Scan({{"cats", "flat"}}), "cats:1:flat/model.onnx");
  std::filesystem::create_directories(folder_ / "empty");
  EXPECT_EQ(Scan({{"", "empty"}}), "NOT_FOUND");
}

TEST_F(NamedModelsTest, AVersionOfSeveralFilesIsAFolder) {
  testing::WriteFile(folder_ / "parts/3/model.onnx/model.onnx", "");
  testing::WriteFile(folder_ / "parts/3/model.onnx/weights.bin", "");
  for (const char* path : {"parts", "parts/3", "parts/3/model.onnx", "parts/3/model.onnx/"})
    EXPECT_EQ(Scan({{"", path}}), "parts:3:parts/3/model.onnx/model.onnx") << path;
  const ServedModel found = ScanNamed({{"", (folder_ / "parts").string()}}).value()[0];
  testing::FakeEngine engine;
  EXPECT_EQ(LoadVersion(found, &engine, {}).state, ModelState::kReady);
  EXPECT_EQ(StampOf(found).size(), 2) << "each file once";
}

TEST_F(NamedModelsTest, AFolderThatIsAVersionsFileHasOneInside) {
  testing::WriteFile(folder_ / "hollow/1/model.onnx/other.onnx", "");
  EXPECT_THAT(ScanNamed({{"", (folder_ / "hollow/1").string()}}).status(),
              testing::StatusIs(absl::StatusCode::kNotFound,
                                "hollow/1/model.onnx' is a folder without a file model.onnx"));
  const ServedModel found = ScanNamed({{"", (folder_ / "hollow").string()}}).value()[0];
  testing::FakeEngine engine;
  EXPECT_THAT(LoadVersion(found, &engine, {}).load_status,
              testing::StatusIs(absl::StatusCode::kNotFound,
                                "the version's 'model.onnx' is a folder without 'model.onnx'"));
}

TEST_F(NamedModelsTest, ZerosAheadOfANumberAreNoVersion) {
  for (const char* version : {"0", "7", "007", "08"})
    testing::WriteFile(folder_ / "bond" / version / "model.onnx", "");
  std::vector<std::string> remarks;
  const auto found = ScanNamed(
      {{"", (folder_ / "bond").string()}},
      {.latest = 0, .remark = [&remarks](const std::string& line) { remarks.push_back(line); }});
  ASSERT_THAT(found, testing::IsOk());
  std::vector<int64_t> versions;
  for (const ServedModel& served : *found) versions.push_back(served.version);
  EXPECT_THAT(versions, ElementsAre(0, 7));
  EXPECT_THAT(remarks, ElementsAre(HasSubstr("bond/007: skipped, the number of a version has no"),
                                   HasSubstr("bond/08: skipped")));
}

TEST_F(NamedModelsTest, TheNameOfAFlagStandsAboveTheSettings) {
  testing::WriteFile(folder_ / "echo/config.pbtxt", "name: 'bird'");
  testing::FakeEngine engine;
  for (const auto& [name, path, state] : {std::tuple("cats", "echo", ModelState::kReady),
                                          {"cats", "echo/2", ModelState::kReady},
                                          {"cats", "echo/2/model.onnx", ModelState::kReady},
                                          {"", "echo", ModelState::kUnavailable}}) {
    const auto found = ScanNamed({{name, (folder_ / path).string()}});
    ASSERT_THAT(found, testing::IsOk());
    EXPECT_EQ(LoadVersion((*found)[0], &engine, {}).state, state) << name << " " << path;
  }
}

TEST_F(NamedModelsTest, AFolderOfModelsSaysWhatIsMeant) {
  testing::WriteFile(folder_ / "models/digits/1/model.onnx", "");
  const auto status = [this] { return ScanNamed({{"", (folder_ / "models").string()}}).status(); };
  EXPECT_THAT(status(), testing::StatusIs(absl::StatusCode::kNotFound,
                                          "it holds 'digits', which is a model folder: point at "
                                          "it, or use --model_repository"));
  testing::WriteFile(folder_ / "models/cats/1/model.onnx", "");
  EXPECT_THAT(status(), testing::StatusIs(absl::StatusCode::kNotFound, "it holds 2 model folders"));
}

TEST_F(NamedModelsTest, TwoModelsMayNotShareNameAndVersion) {
  EXPECT_EQ(Scan({{"", "echo/1"}, {"", "echo/2"}}),
            "echo:1:echo/1/model.onnx echo:2:echo/2/model.onnx");
  EXPECT_EQ(Scan({{"", "echo"}, {"", "echo/2"}}), "INVALID_ARGUMENT");
  EXPECT_EQ(Scan({{"\xff", "echo"}}), "INVALID_ARGUMENT") << "not UTF-8";
}

TEST_F(NamedModelsTest, AFlatFoldersLabelsAndSettingsAreReadAndWatched) {
  const std::filesystem::path flat = folder_ / "flat";
  testing::WriteFile(flat / "net.onnx", "");
  testing::WriteFile(flat / "labels.txt", "cat\ndog\n");
  testing::WriteFile(flat / "config.pbtxt", "max_batch_size: 3");
  const auto found = ScanNamed({{"cats", flat.string()}});
  ASSERT_THAT(found, testing::IsOk());
  testing::FakeEngine engine;
  const ServedModel served = LoadVersion((*found)[0], &engine, {});
  EXPECT_EQ(served.state, ModelState::kReady) << served.load_status;
  EXPECT_EQ(served.labels, "cat\ndog\n");
  EXPECT_EQ(served.max_batch, 3);
  EXPECT_EQ(StampOf(served).size(), 3) << "each file once";
}

TEST_F(NamedModelsTest, StrictSettingsAreThoseOfEveryPath) {
  testing::WriteFile(folder_ / "flat/net.onnx", "");
  const ScanOptions strict{.strict_config = true};
  for (const char* path : {"echo", "echo/2", "echo/2/model.onnx", "flat"}) {
    const auto found = ScanNamed({{"", (folder_ / path).string()}}, strict);
    ASSERT_THAT(found, testing::IsOk());
    for (const ServedModel& served : *found) EXPECT_TRUE(served.strict_config) << path;
  }
}

}  // namespace
}  // namespace tilewire::service
