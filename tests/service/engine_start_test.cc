// SPDX-License-Identifier: Apache-2.0
#include "service/engine_start.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <thread>

#include "engine/threading/arena.h"
#include "engine/threading/mutex.h"
#include "engine/threading/urgent_work.h"
#include "gtest/gtest.h"
#include "service/models/niceness.h"
#include "service/schedule/time_slice.h"

namespace tilewire::service {
namespace {

int NicenessOfThisThread() { return getpriority(PRIO_PROCESS, 0); }
int NicenessOfThisProcess() { return getpriority(PRIO_PROCESS, static_cast<id_t>(getpid())); }

// Else a server beside a busy process would get next to nothing.
TEST(EngineStartTest, ComputeThreadsHaveThePriorityOfTheProcessAndOrdinarySlices) {
  auto engine = StartEngine({.threads = 2}, /*pin_threads=*/false);
  ASSERT_TRUE(engine.ok()) << engine.status();
  int niceness = -100;
  uint64_t slice = 0, lowered = 0;
  threading::Notification done;
  (*engine)->arena().Enqueue([&] {
    niceness = NicenessOfThisThread();
    slice = SliceOfThisThread();
    done.Notify();
  });
  done.WaitForNotification();
  EXPECT_EQ(niceness, NicenessOfThisProcess());
  std::thread([&] {
    LowerPriorityOfThisThread(getpid());
    lowered = SliceOfThisThread();
  }).join();
  EXPECT_EQ(lowered, slice) << "loads compute, too";
  const bool has_short_slices = SliceOfThisThread() > 0 && SliceOfThisThread() < slice;
  EXPECT_NE(has_short_slices, threading::UrgentWork::IsUnderWayElsewhere())
      << "compute threads offer their cores where threads that answer have no short slices";
  if (!has_short_slices) GTEST_SKIP() << "the system has no slices that a thread asks for";
}

TEST(EngineStartTest, ThreadsThatMakeModelsReadyAreNicerButNotTheNicest) {
  std::thread([] {
    LowerPriorityOfThisThread(getpid());
    LowerPriorityOfThisThread(getpid());  // it is not lowered once more
    EXPECT_EQ(NicenessOfThisThread(), std::min(19, NicenessOfThisProcess() + kNicenessToRequests));
  }).join();
}

}  // namespace
}  // namespace tilewire::service
