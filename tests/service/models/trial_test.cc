// SPDX-License-Identifier: Apache-2.0
//
// Trials in processes of their own, on the real engine.
#include "service/models/trial/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "google/protobuf/text_format.h"
#include "service/models/model_load.h"
#include "service/models/repository_scan.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::HasSubstr;
using tilewire::testing::IsOk;
using tilewire::testing::OnnxBuilder;
using tilewire::testing::StatusIs;

constexpr TrialMemory kMemory = {.load_bytes = int64_t{20} << 20, .run_bytes = int64_t{20} << 20};

// y = Conv(x), over pictures of any number, or of any size too.
std::string Convolution(bool open = false) {
  OnnxBuilder model;
  model.Input("x", {-1, 3, open ? -1 : 8, open ? -1 : 8}).Floats("w", {4, 3, 3, 3});
  model.Node("Conv", {"x", "w"}, {"y"}, {tilewire::testing::Ints("pads", {1, 1, 1, 1})});
  return model.Output("y").Serialize();
}

class TrialTest : public ::testing::Test {
 protected:
  ServedModel Write(const std::string& name, const std::string& file) {
    const std::filesystem::path folder =
        std::filesystem::path(::testing::TempDir()) /
        ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder / name / "1");
    tilewire::testing::WriteFile((folder / name / "1" / "model.onnx").string(), file);
    return ScanDirectory(folder.string(), {.scope = {.model = name}}).value()[0];
  }
  absl::Status Try(ServedModel* found, const std::vector<Dims>& shapes = {},
                   const TrialMemory& memory = kMemory) {
    const ProcessTrial trial({.engine = engine_->options(),
                              .longest = longest_,
                              .program = "tests/service/models/trial_child"});
    return trial.Run(
        shapes, memory, [] { return absl::OkStatus(); }, found);
  }
  absl::Status Try(const std::string& name, const std::string& file = Convolution()) {
    ServedModel found = Write(name, file);
    return Try(&found);
  }

  const std::unique_ptr<Engine> engine_ = Engine::Create({.threads = 1}).value();
  absl::Duration longest_ = absl::Minutes(1);
};

TEST_F(TrialTest, WhatLoadsHereLoadsThere) {
  EXPECT_THAT(Try("conv"), IsOk());
  ServedModel open = Write("open", Convolution(/*open=*/true));
  EXPECT_THAT(Try(&open), IsOk());
  EXPECT_THAT(Try(&open, {{1, 3, 32, 32}}), IsOk());
}

TEST_F(TrialTest, WhatDoesNotLoadGivesTheErrorThatItGivesHere) {
  OnnxBuilder unknown;
  unknown.Input("x", {1, 3}).Node("Tile2", {"x"}, {"y"}).Output("y");
  for (const std::string& file : {std::string("broken"), std::string(), unknown.Serialize()}) {
    ServedModel found = Write("model", file);
    const ServedModel here = LoadVersion(found, engine_.get(), {});
    const absl::Status there = Try(&found);
    EXPECT_EQ(NotLoaded(found, there).load_status, here.load_status);
    EXPECT_FALSE(there.ok());
  }
}

TEST_F(TrialTest, SettingsAreReadThereToo) {
  ServedModel found = Write("model", Convolution());
  auto config = std::make_shared<inference::ModelConfig>();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString("default_model_filename: 'other.onnx'",
                                                            config.get()));
  found.given_config = config;
  EXPECT_THAT(Try(&found), StatusIs(absl::StatusCode::kNotFound, "holds 'model.onnx', but no"));
  EXPECT_EQ(std::filesystem::path(found.path).filename(), "other.onnx");
}

TEST_F(TrialTest, AFolderInThePlaceOfTheFileIsReadThereToo) {
  ServedModel found = Write("parts", "");
  std::filesystem::remove(found.path);
  std::filesystem::create_directories(found.path);
  tilewire::testing::WriteFile((std::filesystem::path(found.path) / "model.onnx").string(),
                               Convolution());
  EXPECT_THAT(Try(&found), IsOk());
  EXPECT_EQ(found.path, (std::filesystem::path(found.folder) / "model.onnx/model.onnx").string());
}

TEST_F(TrialTest, WhoNamedTheModelIsKnownThereToo) {
  ServedModel found = Write("model", Convolution());
  tilewire::testing::WriteFile(found.config_path, "name: 'other'");
  EXPECT_THAT(Try(&found), StatusIs(absl::StatusCode::kInvalidArgument, "'other' is not 'model'"));
  found.named_by = NamedBy::kFlag;
  EXPECT_THAT(Try(&found), IsOk());
}

TEST_F(TrialTest, WhatEndsItIsTold) {
  EXPECT_THAT(Try("crashes"), StatusIs(absl::StatusCode::kInternal,
                                       "its trial died of SIGSEGV (Segmentation fault), at: "
                                       "planning node 'conv1'"));
  EXPECT_THAT(Try("aborts"), StatusIs(absl::StatusCode::kInternal, "SIGABRT"));
  EXPECT_THAT(Try("ends"), StatusIs(absl::StatusCode::kInternal, "exit status 3 and no result"));
  EXPECT_THAT(Try("is_killed"), StatusIs(absl::StatusCode::kResourceExhausted, "where memory is"));
}

TEST_F(TrialTest, WhatHangsIsEndedAfterItsTime) {
  longest_ = absl::Seconds(1);
  EXPECT_THAT(Try("hangs"), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                     "did not end within 1s (--trial_seconds), at: "));
}

TEST_F(TrialTest, ATimeThatIsOverIsNotWaitedFor) {
  longest_ = -absl::Seconds(1);
  EXPECT_THAT(Try("hangs"), StatusIs(absl::StatusCode::kDeadlineExceeded));
}

TEST_F(TrialTest, MemoryIsBounded) {
  EXPECT_THAT(Try("takes_memory"), StatusIs(absl::StatusCode::kResourceExhausted,
                                            "a trial of its files may take 40 MB"));
}

TEST_F(TrialTest, ARunThatIsTooLargeDoesNotTakePlace) {
  ServedModel found = Write("model", Convolution());
  TrialMemory memory = kMemory;
  memory.run_bytes = 10;
  ::testing::internal::CaptureStdout();
  EXPECT_THAT(Try(&found, {}, memory), IsOk());
  EXPECT_THAT(::testing::internal::GetCapturedStdout(), HasSubstr("its trial left out a run"));
}

TEST_F(TrialTest, WhoWaitsMayEndIt) {
  ServedModel found = Write("hangs", Convolution());
  const ProcessTrial trial(
      {.engine = engine_->options(), .program = "tests/service/models/trial_child"});
  EXPECT_THAT(trial.Run(
                  {}, kMemory, [] { return absl::CancelledError("the server ends"); }, &found),
              StatusIs(absl::StatusCode::kCancelled, "the server ends"));
}

TEST_F(TrialTest, WhereNoProcessStartsThereIsNone) {
  ServedModel found = Write("crashes", Convolution());
  const ProcessTrial trial({.engine = engine_->options(), .program = "/nowhere"});
  EXPECT_THAT(trial.Run(
                  {}, kMemory, [] { return absl::OkStatus(); }, &found),
              IsOk());
}

}  // namespace
}  // namespace tilewire::service
