// SPDX-License-Identifier: Apache-2.0
#include "client/training/learned_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "tests/client/training/fake_trainer.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

TrainingRecord RecordOf(std::vector<double> losses) {
  TrainingRecord record;
  record.losses = std::move(losses);
  return record;
}

// Notes the paths that it is asked for, and writes a file, except where a path begins with one of
// `refused`, as if its disk were full.
class WritingTrainer {
 public:
  explicit WritingTrainer(std::vector<std::string> refused) {
    trainer.in_writing = [this, refused](const std::string& path) {
      asked.push_back(path);
      for (const std::string& prefix : refused) {
        if (path.rfind(prefix, 0) == 0) return absl::ResourceExhaustedError("there is no room");
      }
      std::ofstream(path) << "model";
      return absl::OkStatus();
    };
  }
  FakeTrainer trainer;
  std::vector<std::string> asked;
};

TEST(WriteLearned, IsWrittenWhereItIsAskedFor) {
  WritingTrainer writing({});
  const std::string path = ::testing::TempDir() + "/learned.onnx";
  const LearnedFile learned = WriteLearned(writing.trainer, RecordOf({1, 0.5}), path);
  EXPECT_THAT(learned.failure, IsOk());
  EXPECT_EQ(learned.path, path);
  EXPECT_EQ(writing.asked, std::vector<std::string>{path});
}

TEST(WriteLearned, IsKeptElsewhereIfThatFails) {
  WritingTrainer writing({"/full/"});
  const LearnedFile learned = WriteLearned(writing.trainer, RecordOf({1}), "/full/new.onnx");
  EXPECT_THAT(learned.failure, StatusIs(absl::StatusCode::kResourceExhausted, "there is no room"));
  const std::filesystem::path file(learned.path);
  EXPECT_EQ(file.filename(), "new.onnx");
  EXPECT_EQ(file.parent_path().filename().string().rfind("tilewire-", 0), 0);
  EXPECT_TRUE(std::filesystem::is_regular_file(file));
  std::filesystem::remove_all(file.parent_path());
}

TEST(WriteLearned, LeavesNoFolderIfNothingTakesIt) {
  WritingTrainer writing({"/"});
  const LearnedFile learned = WriteLearned(writing.trainer, RecordOf({1}), "/full/new.onnx");
  EXPECT_THAT(learned.failure, StatusIs(absl::StatusCode::kResourceExhausted,
                                        "there is no room; nor elsewhere: there is no room"));
  EXPECT_EQ(learned.path, "");
  ASSERT_EQ(writing.asked.size(), 2);
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(writing.asked[1]).parent_path()));
}

TEST(WriteLearned, SaysWhyThereIsNoTemporaryFolder) {
  WritingTrainer writing({"/full/"});
  const char* const set = std::getenv("TMPDIR");
  const std::optional<std::string> before =
      set ? std::make_optional<std::string>(set) : std::nullopt;
  setenv("TMPDIR", "/proc", 1);  // where no process can make a folder
  const LearnedFile learned = WriteLearned(writing.trainer, RecordOf({1}), "/full/new.onnx");
  before ? setenv("TMPDIR", before->c_str(), 1) : unsetenv("TMPDIR");
  EXPECT_THAT(learned.failure,
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "there is no room; nor elsewhere: no folder of temporary files: /proc/"));
  EXPECT_THAT(learned.failure, StatusIs(absl::StatusCode::kResourceExhausted, ": No such file"));
  EXPECT_EQ(learned.path, "");
}

TEST(WriteLearned, WritesNothingThatIsWorthNothing) {
  TrainingRecord failed = RecordOf({1, 2}), lost = RecordOf({1, 2});
  failed.failure = absl::ResourceExhaustedError("no memory");
  lost.before = HeldOut{.loss = 1};
  lost.epochs = {{.epoch = 1, .held_out = HeldOut{.loss = INFINITY}}};
  const struct {
    TrainingRecord record;
    absl::StatusCode code;
    const char* message;
  } kCases[] = {
      {failed, absl::StatusCode::kResourceExhausted, "no memory"},
      {RecordOf({}), absl::StatusCode::kOk, ""},
      {RecordOf({NAN, NAN}), absl::StatusCode::kFailedPrecondition, "nothing was learned"},
      {RecordOf({1, NAN}), absl::StatusCode::kFailedPrecondition, "have ruined the parameters"},
      {lost, absl::StatusCode::kFailedPrecondition, "the held-out loss is no longer finite"},
  };
  for (const auto& one : kCases) {
    WritingTrainer writing({});
    const LearnedFile learned = WriteLearned(writing.trainer, one.record, "/full/new.onnx");
    EXPECT_THAT(learned.failure, StatusIs(one.code, one.message));
    EXPECT_EQ(learned.path, "");
    EXPECT_TRUE(writing.asked.empty());
  }
}

}  // namespace
}  // namespace tilewire::client
