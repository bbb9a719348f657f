// SPDX-License-Identifier: Apache-2.0
#include "service/models/uploads/upload_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

class UploadFolderTest : public ::testing::Test {
 protected:
  UploadFolderTest()
      : folder_(fs::path(::testing::TempDir()) / "upload_folder" /
                ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  std::unique_ptr<UploadFolder> Open(int64_t most_bytes = 1000) {
    return UploadFolder::Open(folder_.string(), most_bytes).value();
  }
  int64_t Entries() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }
  int64_t Files() const {
    int64_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      files += entry.is_regular_file() ? 1 : 0;
    return files;
  }

  const fs::path folder_;
};

TEST_F(UploadFolderTest, FilesLieInFoldersOfTheirVersions) {
  const std::unique_ptr<UploadFolder> uploads = Open();
  const std::string path =
      uploads->Write({{1, "model.onnx", "one"}, {1, "weights", "w"}, {20, "model.onnx", "two"}})
          .value();
  std::string text;
  std::getline(std::ifstream(path + "/20/model.onnx"), text);
  EXPECT_EQ(text, "two");
  struct stat status;
  ASSERT_EQ(stat((path + "/1/weights").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0400u);
  EXPECT_NE(uploads->Write({{1, "model.onnx", "one"}}).value(), path);
  uploads->Remove(path);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_EQ(Files(), 1);
  uploads->Remove(folder_.string());
  EXPECT_EQ(Files(), 1) << "only what it has written";
}

TEST_F(UploadFolderTest, NothingSurvivesTheProcess) {
  { const std::unique_ptr<UploadFolder> uploads = Open(); }
  EXPECT_EQ(Entries(), 0);
  // A process that was killed has removed nothing, and holds no lock.
  fs::create_directories(folder_ / "tilewire-uploads-old/1/1");
  std::ofstream(folder_ / "tilewire-uploads-old/1/1/model.onnx") << "old";
  std::ofstream(folder_ / "of_another_program") << "stays";
  const std::unique_ptr<UploadFolder> first = Open();
  ASSERT_TRUE(first->Write({{1, "model.onnx", "one"}}).ok());
  EXPECT_FALSE(fs::exists(folder_ / "tilewire-uploads-old"));
  const std::unique_ptr<UploadFolder> second = Open();
  EXPECT_EQ(Files(), 2) << "another process still uses its own";
}

TEST_F(UploadFolderTest, AllUploadsTogetherAreBounded) {
  const std::unique_ptr<UploadFolder> uploads = Open(/*most_bytes=*/10);
  const std::string first = uploads->Write({{1, "a", "12345"}}).value();
  EXPECT_THAT(uploads->Write({{1, "a", "123"}, {2, "a", "456"}}).status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "the files have 6 bytes, and those of other uploads 5; together they may "
                       "have 10 (--max_upload_mb)"));
  uploads->Remove(first);
  EXPECT_THAT(uploads->Write({{1, "a", "123"}, {2, "a", "456"}}).status(), IsOk());
}

// A full disk is the same to write() but for the number of the error.
TEST_F(UploadFolderTest, NothingIsLeftOfAFileThatDoesNotFit) {
  const std::unique_ptr<UploadFolder> uploads = Open(/*most_bytes=*/1 << 20);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {.rlim_cur = 100'000, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status full =
      uploads->Write({{1, "small", "x"}, {1, "large", std::string(200'000, 'x')}}).status();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THAT(full, StatusIs(absl::StatusCode::kResourceExhausted,
                             "file 1/large cannot be stored: File too large"));
  EXPECT_EQ(Files(), 0);
}

TEST_F(UploadFolderTest, AFolderThatIsNoneIsRefused) {
  fs::create_directory_symlink(folder_, folder_ / "link");
  std::ofstream(folder_ / "file") << "x";
  EXPECT_THAT(UploadFolder::Open((folder_ / "link").string(), 10).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, "is a link"));
  EXPECT_THAT(UploadFolder::Open((folder_ / "file").string(), 10).status(),
              StatusIs(absl::StatusCode::kNotFound, "is not a folder"));
  EXPECT_THAT(UploadFolder::Open((folder_ / "none").string(), 10).status(),
              StatusIs(absl::StatusCode::kNotFound, "No such file"));
}

}  // namespace
}  // namespace tilewire::service
