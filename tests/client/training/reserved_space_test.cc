// SPDX-License-Identifier: Apache-2.0
#include "client/training/reserved_space.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

// Bytes of files that this process has open and that have no name, below a folder.
int64_t BytesWithoutName(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code error;
  for (const auto& open : std::filesystem::directory_iterator("/proc/self/fd")) {
    const std::string target = std::filesystem::read_symlink(open.path(), error).string();
    struct stat file;
    if (error || target.rfind(folder, 0) != 0 || stat(open.path().c_str(), &file) != 0) continue;
    if (file.st_nlink == 0) bytes += file.st_size;
  }
  return bytes;
}

std::string NewFolder(const std::string& name) {
  const std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) / name;
  std::filesystem::create_directories(folder);
  return std::filesystem::canonical(folder).string();
}

TEST(ReservedSpace, IsHeldWithoutAName) {
  constexpr int64_t kBytes = 3 << 20;
  const std::string folder = NewFolder("held");
  ASSERT_OK_AND_ASSIGN(ReservedSpace space, ReservedSpace::Take(folder + "/model.onnx", kBytes));
  const int64_t held = BytesWithoutName(folder);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  space.GiveBack();
  EXPECT_EQ(BytesWithoutName(folder), 0);
  if (held == 0) GTEST_SKIP() << "this file system reserves nothing";
  EXPECT_EQ(held, kBytes);
}

TEST(ReservedSpace, SaysThatThereIsTooLittle) {
  const std::string folder = NewFolder("full");
  EXPECT_THAT(ReservedSpace::Take(folder + "/model.onnx", int64_t{1} << 60),
              StatusIs(absl::StatusCode::kResourceExhausted, "the file takes 1152921505 GB in '"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  EXPECT_THAT(ReservedSpace::Take(folder + "/none/model.onnx", 1),
              StatusIs(absl::StatusCode::kNotFound, "cannot make a file in"));
}

// A file system without limits of its own, below a folder that this thread alone sees it in.
bool MountRamfs(const std::string& folder) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", folder.c_str(), "ramfs", 0, nullptr) == 0;
}

TEST(ReservedSpace, IsNotMissedWhereTheFileSystemCountsNone) {
  const std::string folder = NewFolder("ramfs");
  bool is_mounted = false;
  absl::Status taken;
  std::thread([&] {
    is_mounted = MountRamfs(folder);
    if (is_mounted) taken = ReservedSpace::Take(folder + "/model.onnx", 3 << 20).status();
  }).join();
  if (!is_mounted) GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_THAT(taken, IsOk());
}

}  // namespace
}  // namespace tilewire::client
