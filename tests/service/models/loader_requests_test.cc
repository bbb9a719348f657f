// SPDX-License-Identifier: Apache-2.0
//
// Loads and unloads that clients ask for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/threading/mutex.h"
#include "google/protobuf/text_format.h"
#include "tests/service/models/loader_fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

TEST_F(LoaderTest, LoadsByRequestAreRefused) {
  absl::Status told;
  loader_->Load("echo", nullptr, {}, [&](const absl::Status& status) { told = status; });
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kFailedPrecondition, "--model_control=explicit"));
  loader_->Unload("echo", [&](const absl::Status& status) { told = status; });
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kFailedPrecondition, "--model_control=explicit"));
}

// Clients say what is loaded.
class ExplicitTest : public LoaderTest {
 protected:
  void SetUp() override {
    mode_ = ControlMode::kExplicit;
    latest_ = 1;
    LoaderTest::SetUp();
  }

  absl::Status Ask(bool load, const char* name, const char* config = nullptr,
                   std::vector<UploadedFile> files = {}) {
    std::shared_ptr<inference::ModelConfig> given;
    if (config != nullptr) {
      given = std::make_shared<inference::ModelConfig>();
      EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(config, given.get()));
    }
    absl::Status told;
    threading::Notification done;
    const auto tell = [&](const absl::Status& status) {
      told = status;
      done.Notify();
    };
    load ? loader_->Load(name, given, std::move(files), tell) : loader_->Unload(name, tell);
    done.WaitForNotification();
    return told;
  }
};

TEST_F(ExplicitTest, ModelsAreLoadedAndUnloadedByRequest) {
  EXPECT_EQ(engine_.loads(), 0);
  EXPECT_THAT(models_->Find("echo", "").status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_TRUE(models_->AllReady());
  EXPECT_THAT(Ask(true, "none"), StatusIs(absl::StatusCode::kNotFound, "no model 'none'"));
  EXPECT_THAT(Ask(true, ""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Ask(false, "echo"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Ask(true, "echo"), IsOk());
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(2));
  EXPECT_THAT(Ask(true, "echo"), IsOk());
  EXPECT_EQ(engine_.loads(), 1) << "nothing has changed";
  const std::weak_ptr<const Model> model = Echo("")->model;
  EXPECT_THAT(Ask(false, "echo"), IsOk());
  EXPECT_TRUE(model.expired()) << "the memory is back";
  EXPECT_EQ(ReasonOf(*models_->Peek("echo", 2)), "unloaded");
  EXPECT_THAT(Ask(true, "echo"), IsOk());
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(ExplicitTest, AnUnloadWaitsForTheLastRunAndLetsItEnd) {
  ASSERT_THAT(Ask(true, "echo"), IsOk());
  std::shared_ptr<const Model> running = Echo("")->model;
  absl::Status told = absl::UnknownError("not yet");
  threading::Notification done;
  loader_->Unload("echo", [&](const absl::Status& status) {
    told = status;
    done.Notify();
  });
  Until([&] { return models_->Peek("echo", 2)->state == ModelState::kUnloading; });
  EXPECT_EQ(ModelStateName(ModelState::kUnloading), "UNLOADING");
  EXPECT_THAT(Run(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_FALSE(done.HasBeenNotified());
  running = nullptr;
  done.WaitForNotification();
  EXPECT_THAT(told, IsOk());
}

TEST_F(ExplicitTest, AGivenConfigStandsForTheFileAndABadOneChangesNothing) {
  ASSERT_THAT(Ask(true, "echo", "max_batch_size: 3 version_policy { all { } }"), IsOk());
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(1, 2));
  EXPECT_EQ(Echo("2")->max_batch, 3);
  EXPECT_THAT(Ask(true, "echo", "sequence_batching { }"),
              StatusIs(absl::StatusCode::kInvalidArgument, "sequence_batching"));
  EXPECT_EQ(Echo("2")->max_batch, 3);
  EXPECT_THAT(Ask(true, "echo"), IsOk());
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(2));
  EXPECT_EQ(Echo("2")->max_batch, 0);
}

TEST_F(ExplicitTest, AFailedLoadTellsItsReasonAndKeepsWhatServes) {
  ASSERT_THAT(Ask(true, "echo"), IsOk());
  WriteFile(directory_ / "echo/2/model.onnx", "broken");
  EXPECT_THAT(Ask(true, "echo"), StatusIs(absl::StatusCode::kFailedPrecondition, "version 2: "));
  EXPECT_THAT(Run(), IsOk());
  WriteFile(directory_ / "echo/3/model.onnx", "broken");
  EXPECT_THAT(Ask(true, "echo"), StatusIs(absl::StatusCode::kFailedPrecondition, "version 3"));
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(ExplicitTest, AFileThatDidNotLoadIsNotLoadedBecauseAnotherOneServes) {
  ASSERT_THAT(Ask(true, "echo"), IsOk());
  WriteFile(directory_ / "echo/2/model.onnx", "broken");
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(Ask(true, "echo"), StatusIs(absl::StatusCode::kFailedPrecondition, "version 2: "))
        << i;
  }
  EXPECT_THAT(Run(), IsOk());
}

// Files come with requests.
class UploadTest : public ExplicitTest {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "uploads" /
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    uploads_ = UploadFolder::Open(folder_.string(), /*most_bytes=*/100).value();
    upload_folder_ = uploads_.get();
    ExplicitTest::SetUp();
  }
  void TearDown() override { loader_ = nullptr; }

  // The names of the files that are there; the loader may be removing some meanwhile.
  std::vector<std::string> Stored() const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (std::filesystem::recursive_directory_iterator it(folder_, ignored), end; it != end;
         it.increment(ignored)) {
      if (it->is_regular_file(ignored)) names.push_back(it->path().filename().string());
    }
    return names;
  }

  std::filesystem::path folder_;
  std::unique_ptr<UploadFolder> uploads_;
};

TEST_F(UploadTest, FilesAreServedUntilTheModelIsUnloaded) {
  EXPECT_EQ(loader_->MostUploadBytes(), 100);
  EXPECT_THAT(Ask(true, "sent", "", {{5, "model.onnx", "weights"}}), IsOk());
  EXPECT_THAT(models_->Versions("sent"), ElementsAre(5));
  EXPECT_THAT(Stored(), ElementsAre("model.onnx"));
  EXPECT_THAT(Ask(false, "sent"), IsOk());
  EXPECT_THAT(Stored(), ElementsAre());
  EXPECT_EQ(models_->Peek("sent", 5), nullptr);
  EXPECT_THAT(Ask(true, "sent"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(UploadTest, TheyStandInThePlaceOfTheRepositorys) {
  ASSERT_THAT(Ask(true, "echo"), IsOk());
  EXPECT_THAT(Ask(true, "echo", "", {{1, "model.onnx", "sent"}}), IsOk());
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(1));
  EXPECT_THAT(Ask(true, "echo", "", {{7, "model.onnx", "sent again"}}), IsOk());
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(7));
  Until([&] { return Stored().size() == 1; });
  EXPECT_THAT(Ask(true, "echo"), IsOk());
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(2));
  Until([&] { return Stored().empty(); });
  EXPECT_THAT(Ask(true, "echo", "", {{7, "model.onnx", "sent"}}), IsOk());
  EXPECT_THAT(Ask(false, "echo"), IsOk());
  EXPECT_EQ(ReasonOf(*models_->Peek("echo", 2)), "unloaded") << "it is on disk";
}

TEST_F(UploadTest, NothingIsLeftOfWhatFails) {
  ASSERT_THAT(Ask(true, "echo"), IsOk());
  EXPECT_THAT(Ask(true, "echo", "", {{2, "model.onnx", "broken"}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "not an ONNX file"));
  EXPECT_THAT(Ask(true, "sent", "", {{1, "other.onnx", "x"}}),
              StatusIs(absl::StatusCode::kFailedPrecondition, "other.onnx"));
  EXPECT_THAT(Ask(true, "echo", "", {{1, "model.onnx", std::string(101, 'x')}}),
              StatusIs(absl::StatusCode::kResourceExhausted, "--max_upload_mb"));
  EXPECT_THAT(Stored(), ElementsAre());
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(ExplicitTest, RequestsThatWaitEndWithTheServer) {
  loader_->Stop();
  EXPECT_THAT(Ask(true, "echo"), StatusIs(absl::StatusCode::kCancelled));
}

}  // namespace
}  // namespace tilewire::service
