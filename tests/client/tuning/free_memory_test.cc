// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/free_memory.h"

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::client {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Files of Linux, as a process sees them.
class FreeMemoryTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << '\n';
  }

  const std::string root_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(FreeMemoryTest, WithoutGroupsItIsTheMachines) {
  EXPECT_EQ(FreeMemory(root_), std::numeric_limits<int64_t>::max());
  Write("/proc/meminfo",
        "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB");
  EXPECT_EQ(FreeMemory(root_), 600 << 10);
}

TEST_F(FreeMemoryTest, AGroupLeavesItsLimitWithoutWhatItUses) {
  Write("/proc/meminfo", "MemAvailable:    600 kB");
  Write("/proc/self/cgroup", "0::/a/b");
  Write("/sys/fs/cgroup/a/b/memory.max", "500000");
  Write("/sys/fs/cgroup/a/b/memory.current", "300000");
  EXPECT_EQ(FreeMemory(root_), 200'000);
  Write("/sys/fs/cgroup/a/b/memory.stat", "anon 250000\ninactive_file 50000\nactive_file 1");
  EXPECT_EQ(FreeMemory(root_), 250'000) << "what is cached of files is given back";
  Write("/sys/fs/cgroup/a/b/memory.current", "900000");
  EXPECT_EQ(FreeMemory(root_), 0);
  Write("/sys/fs/cgroup/a/b/memory.max", "max");
  EXPECT_EQ(FreeMemory(root_), 600 << 10);
}

// Pictures of 224 x 224 are 602 kB of floats each.
TEST_F(FreeMemoryTest, TooManyPicturesAreRefusedWithBothAmounts) {
  EXPECT_TRUE(CheckMemory("--images", 300, 602112, int64_t{1} << 30).ok());
  const absl::Status many = CheckMemory("--images", 50000, 602112, int64_t{12} << 30);
  EXPECT_EQ(many.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(
      std::string(many.message()),
      AllOf(HasSubstr("--images: 50000 examples of 602 kB each do not fit the memory that is "
                      "free, 12.9 GB"),
            HasSubstr("a few hundred are enough")));
  EXPECT_FALSE(CheckMemory("--array", std::numeric_limits<int64_t>::max(), 1 << 30, 1 << 30).ok());
}

}  // namespace
}  // namespace tilewire::client
