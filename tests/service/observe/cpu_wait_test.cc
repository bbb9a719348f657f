// SPDX-License-Identifier: Apache-2.0
#include "service/observe/cpu_wait.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "service/observe/slow_requests.h"

namespace tilewire::service {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

// Files of /proc below a root of the test's own.
class CpuWaitTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(root_);
    std::filesystem::create_directories(root_);
  }

  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void WriteTask(int number, const std::string& name, int64_t ran_ms, int64_t waited_ms) {
    const std::string task = absl::StrCat("proc/self/task/", number);
    Write(task + "/comm", name + "\n");
    Write(task + "/schedstat", absl::StrCat(ran_ms, "000000 ", waited_ms, "000000 12\n"));
  }

  const std::filesystem::path root_ = std::filesystem::path(::testing::TempDir()) / "cpu_wait";
};

TEST_F(CpuWaitTest, SumsWhatThreadsThatRunRequestsWaited) {
  WriteTask(1, "tilewire-server", 9000, 9000);
  WriteTask(2, "tw-compute", 5000, 5000);
  CpuWait wait(root_);
  wait.Look(kSecond);
  EXPECT_EQ(wait.sums().waited_ns, 0) << "what was before the start is not counted";
  EXPECT_FALSE(wait.sums().share.has_value());
  WriteTask(1, "tilewire-server", 19000, 19000);
  WriteTask(2, "tw-compute", 5600, 5300);
  WriteTask(3, "tw-express", 20, 80);
  wait.Look(2 * kSecond - 1);
  EXPECT_EQ(wait.sums().waited_ns, 0) << "it is not time for a look";
  wait.Look(2 * kSecond);
  EXPECT_EQ(wait.sums().waited_ns, 380 * kSecond / 1000);
  EXPECT_DOUBLE_EQ(wait.sums().share.value_or(-1), 0.38) << "of 1000 ms in which they could run";
}

TEST_F(CpuWaitTest, TheShareIsThatOfTheLastMinute) {
  WriteTask(2, "tw-compute", 0, 0);
  CpuWait wait(root_);
  wait.Look(kSecond);
  WriteTask(2, "tw-compute", 0, 1000);
  wait.Look(2 * kSecond);
  EXPECT_DOUBLE_EQ(wait.sums().share.value_or(-1), 1);
  WriteTask(2, "tw-compute", 3000, 2000);
  wait.Look(50 * kSecond);
  EXPECT_DOUBLE_EQ(wait.sums().share.value_or(-1), 0.4);
  WriteTask(2, "tw-compute", 4000, 2000);
  wait.Look(62 * kSecond);
  EXPECT_DOUBLE_EQ(wait.sums().share.value_or(-1), 0.2) << "without the first second";
  wait.Look(200 * kSecond);
  EXPECT_FALSE(wait.sums().share.has_value()) << "what does not run waits for nothing";
  EXPECT_EQ(wait.sums().waited_ns, 2 * kSecond);
}

TEST_F(CpuWaitTest, AThreadThatEndsTakesNothingWithIt) {
  WriteTask(2, "tw-compute", 0, 0);
  CpuWait wait(root_);
  wait.Look(kSecond);
  WriteTask(2, "tw-compute", 100, 300);
  wait.Look(2 * kSecond);
  std::filesystem::remove_all(root_ / "proc/self/task/2");
  WriteTask(3, "tw-compute", 100, 100);
  wait.Look(3 * kSecond);
  EXPECT_EQ(wait.sums().waited_ns, 400 * kSecond / 1000);
}

TEST_F(CpuWaitTest, ReadsThePressureOfTheMachine) {
  Write("proc/pressure/cpu",
        "some avg10=96.61 avg60=80.35 avg300=85.97 total=24916703382\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
  CpuWait wait(root_);
  wait.Look(kSecond);
  EXPECT_NEAR(wait.sums().pressure.value_or(-1), 0.8035, 1e-9);
}

TEST_F(CpuWaitTest, WhereTheSystemTellsNothingNothingIsKnown) {
  for (const char* schedstat : {"", "nonsense", "1"}) {
    Write("proc/self/task/2/comm", "tw-compute\n");
    Write("proc/self/task/2/schedstat", schedstat);
    CpuWait wait(root_);
    for (int second = 1; second < 4; ++second) wait.Look(second * kSecond);
    EXPECT_EQ(wait.sums().waited_ns, 0) << schedstat;
    EXPECT_FALSE(wait.sums().share.has_value()) << schedstat;
    EXPECT_FALSE(wait.sums().pressure.has_value()) << schedstat;
  }
  CpuWait nowhere("/nowhere");
  nowhere.Look(kSecond);
  EXPECT_EQ(nowhere.sums().waited_ns, 0);
}

TEST_F(CpuWaitTest, ComesWithTheSlowRequests) {
  WriteTask(2, "tw-compute", 0, 0);
  const FlightRecorder flights;
  SlowRequests slow(&flights, root_);
  slow.Look(kSecond);
  WriteTask(2, "tw-compute", 600, 400);
  slow.Look(2 * kSecond);
  EXPECT_DOUBLE_EQ(slow.cpu_wait().share.value_or(-1), 0.4);
}

}  // namespace
}  // namespace tilewire::service
