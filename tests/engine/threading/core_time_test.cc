// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/core_time.h"

#include <x86intrin.h>

#include <atomic>
#include <thread>

#include "engine/threading/arena.h"
#include "gtest/gtest.h"

namespace tilewire::threading {
namespace {

// Long beside what it costs a thread to join and to leave a loop.
constexpr uint64_t kPieceTicks = 20'000'000;

void Compute(uint64_t ticks) {
  const uint64_t start = __rdtsc();
  while (__rdtsc() - start < ticks) {
  }
}

// A loop of `runners` pieces that all run at the same time, each on a thread of its own.
void RunTogether(Arena* arena, int runners) {
  std::atomic<int> come{0};
  Team(arena, runners).ParallelFor(runners, [&](int64_t) {
    ++come;
    while (come.load() < runners) std::this_thread::yield();
    Compute(kPieceTicks);
  });
}

TEST(CoreTimeTest, WithoutHelpersIsOneCore) {
  Arena arena(3);
  const CoreTime work;
  EXPECT_EQ(CoreTime::OfThread(), &work);
  Team::Serial().ParallelFor(4, [](int64_t) { Compute(1000); });
  Team(&arena, 1).ParallelFor(4, [](int64_t) { Compute(1000); });
  EXPECT_EQ(work.Cores(), 1);
}

TEST(CoreTimeTest, OutsideOfAWorkNothingIsCounted) {
  Arena arena(3);
  EXPECT_EQ(CoreTime::OfThread(), nullptr);
  RunTogether(&arena, 2);
  const CoreTime work;
  EXPECT_EQ(work.Cores(), 1);
}

// On however few cores: each of the threads that run together is in the loop all the time.
TEST(CoreTimeTest, CountsTheThreadsThatHelp) {
  for (const int runners : {2, 3}) {
    Arena arena(runners);
    arena.Enqueue([&arena, runners] {
      RunTogether(&arena, runners);  // the others are awake now
      const CoreTime work;
      RunTogether(&arena, runners);
      EXPECT_GT(work.Cores(), 1 + 0.5 * (runners - 1)) << runners;
      EXPECT_LE(work.Cores(), runners * 1.001) << runners;
    });
  }
}

TEST(CoreTimeTest, AThreadThatHelpsTwiceAtATimeIsCountedOnce) {
  Arena arena(2);
  arena.Enqueue([&arena] {
    const CoreTime work;
    std::atomic<int> come{0};
    Team(&arena).ParallelFor(2, [&](int64_t) {
      ++come;
      while (come.load() < 2) std::this_thread::yield();
      Team(&arena).ParallelFor(2, [](int64_t) { Compute(kPieceTicks); });
    });
    EXPECT_GT(work.Cores(), 1.2);
    EXPECT_LE(work.Cores(), 2.002);
  });
}

TEST(CoreTimeTest, AWorkWithinTakesItsTimeFromTheOuterOne) {
  const CoreTime outer;
  Compute(kPieceTicks);
  {
    const CoreTime inner;
    EXPECT_EQ(CoreTime::OfThread(), &inner);
    Compute(3 * kPieceTicks);
    EXPECT_EQ(inner.Cores(), 1);
  }
  EXPECT_EQ(CoreTime::OfThread(), &outer);
  EXPECT_GT(outer.Cores(), 0);
  EXPECT_LT(outer.Cores(), 0.5);
}

TEST(CoreTimeTest, HelpersAreKnownWhileTheyHelp) {
  CoreTime work;
  std::thread([&work] {
    EXPECT_EQ(CoreTime::OfThread(), nullptr);
    {
      const Helping helping(&work);
      EXPECT_EQ(CoreTime::OfThread(), &work);
      const Helping again(&work);
      Compute(kPieceTicks);
    }
    EXPECT_EQ(CoreTime::OfThread(), nullptr);
    const Helping none(nullptr);
  }).join();
  EXPECT_GT(work.Cores(), 1.2);
  EXPECT_LE(work.Cores(), 2.001);
}

}  // namespace
}  // namespace tilewire::threading
