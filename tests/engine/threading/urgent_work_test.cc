// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/urgent_work.h"

#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "engine/threading/arena.h"
#include "engine/threading/stop.h"
#include "gtest/gtest.h"

namespace {
thread_local int offers_of_this_thread = 0;
}  // namespace

// In place of the system library's, so that a thread's offers can be counted.
extern "C" int sched_yield() noexcept {
  ++offers_of_this_thread;
  return static_cast<int>(syscall(SYS_sched_yield));
}

namespace tilewire::threading {
namespace {

// The offers of a thread of ordinary priority that computes for several stretches.
int OffersWhileComputing() {
  constexpr uint64_t kCycles = 5'000'000;
  int offers = 0;
  std::thread([&] {
    const uint64_t begin = __rdtsc();
    do {
      Stopped();
    } while (__rdtsc() - begin < kCycles);
    offers = offers_of_this_thread;
  }).join();
  return offers;
}

// Tasks one after the other on the only thread of an arena, until it has offered its core since the
// first of them, or to the last. Neither a task nor its end offers a core: the thread looks for the
// next one meanwhile.
bool OffersBetweenTasks(int tasks) {
  int before = 0, offers = 0;
  std::atomic<int> ended = 0;  // a lock might offer the core, too
  Arena arena(1);
  for (int i = 0; i < tasks && offers == 0; ++i) {
    arena.Enqueue([&, i] {
      if (i == 0) before = offers_of_this_thread;
      offers = offers_of_this_thread - before;
      ended = i + 1;
      ended.notify_one();
    });
    ended.wait(i);
  }
  return offers > 0;
}

bool AnotherThreadSeesIt() {
  bool sees = false;
  std::thread([&] { sees = UrgentWork::IsUnderWayElsewhere(); }).join();
  return sees;
}

TEST(UrgentWorkTest, IsSeenByOtherThreadsWhileItLasts) {
  {
    const UrgentWork work;
    EXPECT_TRUE(AnotherThreadSeesIt());
    EXPECT_FALSE(UrgentWork::IsUnderWayElsewhere());
    { const UrgentWork within; }
    EXPECT_TRUE(AnotherThreadSeesIt());
    EXPECT_FALSE(UrgentWork::IsUnderWayElsewhere());
  }
  EXPECT_FALSE(AnotherThreadSeesIt());
}

TEST(UrgentWorkTest, WhatIsExpectedIsForgotten) {
  bool seen = false;
  for (int i = 0; i < 1000 && !seen; ++i) {  // again, where the thread comes too late
    UrgentWork::Expect();
    seen = AnotherThreadSeesIt();
  }
  EXPECT_TRUE(seen);
  while (UrgentWork::IsUnderWayElsewhere()) std::this_thread::yield();
  EXPECT_FALSE(AnotherThreadSeesIt());
}

TEST(UrgentWorkTest, ThreadsThatComputeOfferTheirCoreToItAlone) {
  EXPECT_EQ(OffersWhileComputing(), 0);
  {
    const UrgentWork work;
    EXPECT_GT(OffersWhileComputing(), 0);
  }
  EXPECT_EQ(OffersWhileComputing(), 0);
}

TEST(UrgentWorkTest, ThreadsThatLookForWorkOfferTheirCoreToItAlone) {
  EXPECT_FALSE(OffersBetweenTasks(100));
  const UrgentWork work;
  EXPECT_TRUE(OffersBetweenTasks(100'000));  // again, where the next task comes before it looks
}

}  // namespace
}  // namespace tilewire::threading
