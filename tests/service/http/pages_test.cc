// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "service/http/process_use.h"
#include "service/http/recent_text.h"

namespace tilewire::service {
namespace {

TEST(RecentTextTest, IsMadeFourTimesASecondAtMost) {
  int made = 0;
  RecentText text([&made] { return absl::StrCat(++made); });
  const absl::Time begin = absl::FromUnixSeconds(1000);
  for (int ms = 0; ms < 10'000; ms += 10) text.Get(begin + absl::Milliseconds(ms));
  EXPECT_EQ(made, 40);
  EXPECT_EQ(text.Get(begin + absl::Milliseconds(9990)), "40");
  EXPECT_EQ(text.Get(begin + absl::Seconds(60)), "41");
}

TEST(ProcessUseTest, IsThisProcess) {
  const ProcessUse before = UseOfProcess("");
  EXPECT_GT(before.start_seconds, 1.6e9);
  EXPECT_LE(before.start_seconds, absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()) + 1);
  EXPECT_GT(before.resident_bytes, 1 << 20);
  EXPECT_GT(before.virtual_bytes, before.resident_bytes);
  EXPECT_GE(before.open_fds, 3);
  EXPECT_GT(before.max_fds, before.open_fds);
  while (UseOfProcess("").cpu_seconds < before.cpu_seconds + 0.05) {
  }
}

// Files of Linux that the test writes.
class ProcessFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(::testing::TempDir()) /
            ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
};

TEST_F(ProcessFilesTest, ThrottledIsTheOwnGroupsInEitherVersion) {
  Write("proc/self/cgroup", "0::/pod/server\n");
  Write("sys/fs/cgroup/pod/server/cpu.stat",
        "usage_usec 9\nnr_throttled 3\nthrottled_usec 1500000\n");
  Write("sys/fs/cgroup/pod/cpu.stat", "throttled_usec 99000000\n");
  EXPECT_DOUBLE_EQ(UseOfProcess(root_.string()).throttled_seconds, 1.5);
  Write("proc/self/cgroup", "5:cpu,cpuacct:/a\n");
  Write("sys/fs/cgroup/cpu/a/cpu.stat", "nr_periods 7\nthrottled_time 2500000000\n");
  EXPECT_DOUBLE_EQ(UseOfProcess(root_.string()).throttled_seconds, 2.5);
  Write("proc/self/cgroup", "");
  EXPECT_EQ(UseOfProcess(root_.string()).throttled_seconds, 0);
}

TEST_F(ProcessFilesTest, TheMemoryOfTheMachineIsWhatIsNotAvailable) {
  Write("proc/meminfo",
        "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    600 kB\n");
  const MachineMemory memory = MemoryOfMachine(root_.string());
  EXPECT_EQ(memory.total_bytes, 1000 * 1024);
  EXPECT_EQ(memory.used_bytes, 400 * 1024);
}

TEST_F(ProcessFilesTest, TheMachineIsBusyWhenItIsNotIdleAndWaitsForNoDisk) {
  const struct {
    const char* why;
    const char* stat;
    double share;
  } kLooks[] = {
      {"all that works: user, nice, system, interrupts, stolen", "cpu  110 10 10 200 0 5 5 10 0 0",
       0.6},
      {"who waits for a disk is idle", "cpu  110 10 10 220 20 5 5 10 0 0", 0},
      {"guests are in user", "cpu  140 10 10 230 20 5 5 10 30 0", 0.75},
      {"nothing has passed", "cpu  140 10 10 230 20 5 5 10 30 0", 0},
      {"the idle time went back, as it may", "cpu  150 10 10 229 20 5 5 10 30 0", 1},
      {"no such line", "intr 1 2 3 4 5 6 7 8 9", 0},
      {"an older kernel's line is too short", "cpu  150 10 10 229", 0},
  };
  Write("proc/stat", "cpu  0 0 0 100 0 0 0 0 0 0\ncpu0 9 9 9 9 9 9 9 9 9 9\n");
  MachineCpu machine(root_.string());
  for (const auto& look : kLooks) {
    Write("proc/stat", absl::StrCat(look.stat, "\ncpu0 9 9 9 9 9 9 9 9 9 9\n"));
    EXPECT_DOUBLE_EQ(machine.ShareSinceLast(), look.share) << look.why;
  }
}

// A program may be called anything.
TEST_F(ProcessFilesTest, TheNameOfTheProgramMayHaveBlanksAndBrackets) {
  Write(
      "proc/self/stat",
      "7 (a) b (c) S 1 7 7 0 -1 4194304 1 2 3 4 150 50 0 0 20 0 4 0 1000 123456 789 18446744073\n");
  Write("proc/stat", "cpu  1 2 3\nbtime 1600000000\n");
  const ProcessUse use = UseOfProcess(root_.string());
  EXPECT_EQ(use.virtual_bytes, 123456);
  EXPECT_DOUBLE_EQ(use.cpu_seconds, 2);
}

}  // namespace
}  // namespace tilewire::service
