// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/cores.h"

#include <sched.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "gtest/gtest.h"

namespace tilewire::cpu {
namespace {

TEST(CoresTest, AtLeastOneAndNoMoreThanTheMachineHas) {
  EXPECT_GE(GrantedCores(), 1);
  EXPECT_LE(GrantedCores(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(CoresTest, FollowsTheAffinityMask) {
  int cores = 0;
  // On a thread of its own, so that the mask dies with it.
  std::thread([&] {
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    int first = 0;
    while (!CPU_ISSET(first, &mine)) ++first;
    CPU_ZERO(&mine);
    CPU_SET(first, &mine);
    ASSERT_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
    cores = GrantedCores();
  }).join();
  EXPECT_EQ(cores, 1);
}

// Files of Linux, as a process within a container sees them.
class QuotaTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text << '\n';
  }
  int CoresOfV2(const std::string& cpu_max) {
    Write("/proc/self/cgroup", "0::/");
    Write("/sys/fs/cgroup/cpu.max", cpu_max);
    return QuotaCores(root_);
  }

  const std::string root_ =
      ::testing::TempDir() + "/" + ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(QuotaTest, IsRoundedDownToWholeCoresAndIsAtLeastOne) {
  EXPECT_EQ(CoresOfV2("400000 100000"), 4);
  EXPECT_EQ(CoresOfV2("399999 100000"), 3);
  EXPECT_EQ(CoresOfV2("250000 100000"), 2);
  EXPECT_EQ(CoresOfV2("50000 100000"), 1);
  EXPECT_GE(CoresOfV2("max 100000"), 1024);
}

TEST_F(QuotaTest, TheTightestOfTheGroupAndItsParentsBinds) {
  Write("/proc/self/cgroup", "0::/pods/one/server");
  Write("/sys/fs/cgroup/pods/one/server/cpu.max", "800000 100000");
  Write("/sys/fs/cgroup/pods/one/cpu.max", "350000 100000");
  Write("/sys/fs/cgroup/pods/cpu.max", "max 100000");
  EXPECT_EQ(QuotaCores(root_), 3);
}

// Without a namespace of control groups the group is named as the host sees it, while the
// container's own group is mounted as the root.
TEST_F(QuotaTest, IsFoundInVersionOneWhereTheGroupsNameIsTheHosts) {
  Write("/proc/self/cgroup", "2:memory:/\n4:cpuacct,cpu:/kubepods/one");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "290000");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(QuotaCores(root_), 2);
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
  EXPECT_GE(QuotaCores(root_), 1024);
}

}  // namespace
}  // namespace tilewire::cpu
