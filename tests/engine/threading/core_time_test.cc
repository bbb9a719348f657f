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

// Others may use the cores: shares of time are asked of one round of these, not of all.
constexpr int kRounds = 300;

void Compute(uint64_t ticks) {
  const uint64_t start = __rdtsc();
  while (__rdtsc() - start < ticks) {
  }
}

// Returns when all have come, or after a moment: a helper that was late rests, and is not called
// again before the next loop.
void AwaitOthers(std::atomic<int>* come, int all) {
  ++*come;
  const uint64_t start = __rdtsc();
  while (come->load() < all && __rdtsc() - start < 10 * kPieceTicks) std::this_thread::yield();
}

// A loop of `runners` pieces, each on a thread of its own where all threads come within a moment.
void RunTogether(Arena* arena, int runners) {
  std::atomic<int> come{0};
  Team(arena, runners).ParallelFor(runners, [&](int64_t) {
    AwaitOthers(&come, runners);
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

// On however few cores: each of the threads that run together is in the loop nearly all the time.
// Where others use the cores, threads are late for some loops, but not for all of them.
TEST(CoreTimeTest, CountsTheThreadsThatHelp) {
  for (const int runners : {2, 3}) {
    Arena arena(runners);
    arena.Enqueue([&arena, runners] {
      const double most_of_them = 1 + 0.5 * (runners - 1);
      double cores = 0;
      for (int i = 0; i < kRounds && cores <= most_of_them; ++i) {
        const CoreTime work;
        RunTogether(&arena, runners);
        cores = work.Cores();
        EXPECT_LE(cores, runners * 1.001) << runners;
      }
      EXPECT_GT(cores, most_of_them) << runners;
    });
  }
}

TEST(CoreTimeTest, AThreadThatHelpsTwiceAtATimeIsCountedOnce) {
  Arena arena(2);
  arena.Enqueue([&arena] {
    double cores = 0;
    for (int i = 0; i < kRounds && cores <= 1.2; ++i) {
      const CoreTime work;
      std::atomic<int> come{0};
      Team(&arena).ParallelFor(2, [&](int64_t) {
        AwaitOthers(&come, 2);
        Team(&arena).ParallelFor(2, [](int64_t) { Compute(kPieceTicks); });
      });
      cores = work.Cores();
      EXPECT_LE(cores, 2.002);
    }
    EXPECT_GT(cores, 1.2);
  });
}

// A thread that loses its core in the outer work is in that for longer, but not every time.
TEST(CoreTimeTest, AWorkWithinTakesItsTimeFromTheOuterOne) {
  double cores = 1;
  for (int i = 0; i < kRounds && cores >= 0.5; ++i) {
    const CoreTime outer;
    Compute(kPieceTicks);
    {
      const CoreTime inner;
      EXPECT_EQ(CoreTime::OfThread(), &inner);
      Compute(3 * kPieceTicks);
      EXPECT_EQ(inner.Cores(), 1);
    }
    EXPECT_EQ(CoreTime::OfThread(), &outer);
    cores = outer.Cores();
    EXPECT_GT(cores, 0);
  }
  EXPECT_LT(cores, 0.5);
}

// However late the thread comes: it helps for as long as that took, and its owner only waits.
TEST(CoreTimeTest, HelpersAreKnownWhileTheyHelp) {
  double cores = 0;
  for (int i = 0; i < kRounds && cores <= 1.2; ++i) {
    CoreTime work;
    const uint64_t begin = __rdtsc();
    std::thread([&] {
      EXPECT_EQ(CoreTime::OfThread(), nullptr);
      {
        const Helping helping(&work);
        EXPECT_EQ(CoreTime::OfThread(), &work);
        const Helping again(&work);
        Compute(kPieceTicks + (__rdtsc() - begin));
      }
      EXPECT_EQ(CoreTime::OfThread(), nullptr);
      const Helping none(nullptr);
      cores = work.Cores();
    }).join();
    EXPECT_LE(cores, 2.001);
  }
  EXPECT_GT(cores, 1.2);
}

}  // namespace
}  // namespace tilewire::threading
