// SPDX-License-Identifier: Apache-2.0
#include "service/granted_memory.h"

#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::service {
namespace {

// Files of Linux, as a process sees them.
class GrantedMemoryTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << '\n';
  }
  MemoryLimit Resident() const { return MemoryLimits(root_)[0]; }

  const std::string root_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(GrantedMemoryTest, WithoutLimitsItIsTheMachines) {
  EXPECT_EQ(Resident().name, "the machine's memory");
  EXPECT_GE(Resident().bytes, UsedMemory().resident);
  Write("/proc/self/cgroup", "4:memory:/user\n0::/user");
  Write("/sys/fs/cgroup/user/memory.max", "max");
  Write("/sys/fs/cgroup/memory/user/memory.limit_in_bytes", "9223372036854771712");
  EXPECT_EQ(Resident().name, "the machine's memory");
}

// As systemd's MemoryMax of a unit makes one.
TEST_F(GrantedMemoryTest, ALimitOfANestedGroupBinds) {
  Write("/proc/self/cgroup", "0::/system.slice/tilewire.service");
  Write("/sys/fs/cgroup/system.slice/memory.max", "max");
  Write("/sys/fs/cgroup/system.slice/tilewire.service/memory.max", "536870912");
  EXPECT_EQ(Resident().bytes, 512 << 20);
  EXPECT_EQ(Resident().name, "memory.max of the control group '/system.slice/tilewire.service'");
}

TEST_F(GrantedMemoryTest, TheTightestOfTheGroupAndItsParentsBinds) {
  Write("/proc/self/cgroup", "0::/pods/one/server");
  Write("/sys/fs/cgroup/pods/one/server/memory.max", "900000000");
  Write("/sys/fs/cgroup/pods/one/memory.max", "800000000");
  Write("/sys/fs/cgroup/pods/memory.max", "max");
  EXPECT_EQ(Resident().bytes, 800'000'000);
  Write("/sys/fs/cgroup/pods/one/server/memory.high", "700000000");
  EXPECT_EQ(Resident().bytes, 700'000'000) << "beyond it the process is slowed down";
  EXPECT_EQ(Resident().name, "memory.high of the control group '/pods/one/server'");
}

TEST_F(GrantedMemoryTest, ANestedGroupOfVersionOneBinds) {
  Write("/proc/self/cgroup", "2:cpu,cpuacct:/other\n4:memory:/a/b");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  Write("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "268435456");
  EXPECT_EQ(Resident().bytes, 256 << 20);
  EXPECT_EQ(Resident().name, "memory.limit_in_bytes of the control group '/a/b'");
}

// Without a namespace of control groups the group is named as the host sees it, while the
// container's own group is mounted as the root.
TEST_F(GrantedMemoryTest, IsFoundInAContainerWhereTheGroupsNameIsTheHosts) {
  Write("/proc/self/cgroup", "4:memory:/docker/0123");
  Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456");
  EXPECT_EQ(Resident().bytes, 256 << 20);
}

TEST_F(GrantedMemoryTest, TheOwnLimitCountsWhatIsMapped) {
  rlimit own;
  ASSERT_EQ(getrlimit(RLIMIT_AS, &own), 0);
  rlimit lower = own;
  lower.rlim_cur = rlim_t{1} << 46;
  ASSERT_EQ(setrlimit(RLIMIT_AS, &lower), 0);
  const std::vector<MemoryLimit> limits = MemoryLimits(root_);
  ASSERT_EQ(setrlimit(RLIMIT_AS, &own), 0);
  ASSERT_EQ(limits.size(), 2u);
  EXPECT_FALSE(limits[0].mapped);
  EXPECT_TRUE(limits[1].mapped);
  EXPECT_EQ(limits[1].bytes, int64_t{1} << 46);
  EXPECT_THAT(limits[1].name, ::testing::HasSubstr("ulimit -v"));
}

}  // namespace
}  // namespace tilewire::service
