// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/pinning.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "engine/threading/arena.h"
#include "engine/threading/mutex.h"

namespace tilewire::threading {
namespace {

std::vector<int> CoresOfThisThread() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

// The cores that each thread of the arena: a task waits until all of them have begun.
std::vector<std::vector<int>> CoresOfThreads(Arena* arena) {
  const int threads = arena->threads();
  std::vector<std::vector<int>> cores(threads);
  std::atomic<int> begun = 0;
  Notification all_have_begun, all_have_ended;
  std::atomic<int> ended = 0;
  for (int i = 0; i < threads; ++i) {
    arena->Enqueue([&] {
      const int index = begun++;
      cores[index] = CoresOfThisThread();
      if (index == threads - 1) all_have_begun.Notify();
      all_have_begun.WaitForNotification();
      if (++ended == threads) all_have_ended.Notify();
    });
  }
  all_have_ended.WaitForNotification();
  std::sort(cores.begin(), cores.end());
  return cores;
}

// First, as pinned threads stay pinned for all arenas after theirs.
TEST(PinningTest, AnotherNumberOfThreadsMovesFreely) {
  const std::vector<int> cores = CoresOfThisThread();
  Arena arena(static_cast<int>(cores.size()) + 1);
  EXPECT_FALSE(PinThreads(&arena));
  EXPECT_EQ(CoresOfThreads(&arena), std::vector<std::vector<int>>(cores.size() + 1, cores));
}

TEST(PinningTest, AThreadPerCoreStaysOnItsOwn) {
  std::vector<std::vector<int>> one_each;
  for (const int core : CoresOfThisThread()) one_each.push_back({core});
  Arena arena(static_cast<int>(one_each.size()));
  EXPECT_TRUE(PinThreads(&arena));
  EXPECT_EQ(CoresOfThreads(&arena), one_each);
}

}  // namespace
}  // namespace tilewire::threading
