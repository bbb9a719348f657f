// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/arena.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "engine/threading/mutex.h"
#include "engine/threading/slots.h"
#include "engine/threading/stop.h"
#include "gtest/gtest.h"

namespace tilewire::threading {
namespace {

constexpr unsigned kFlushDenormals = 0x8040;  // FTZ and DAZ

// Where several threads wait for each other.
class Meeting {
 public:
  explicit Meeting(int threads) : missing_(threads) {}

  // Whether all have come, within a time that no machine that works needs.
  bool AllCome() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    --missing_;
    const auto none_is_missing = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return missing_ <= 0;
    };
    return mutex_.AwaitWithTimeout(absl::Condition(&none_is_missing), absl::Minutes(1));
  }

 private:
  Mutex mutex_;
  int missing_ ABSL_GUARDED_BY(mutex_);
};

bool DenormalsAreFlushed() { return (_mm_getcsr() & kFlushDenormals) == kFlushDenormals; }

struct LoopCase {
  const char* why;
  int threads;
  int max_threads;
  int64_t count;
};

constexpr LoopCase kLoops[] = {
    {"nothing to do", 2, 2, 0},
    {"one piece", 2, 2, 1},
    {"fewer pieces than threads", 4, 4, 3},
    {"ranges of unequal length", 3, 3, 100},
    {"one thread", 1, 1, 17},
    {"more threads than the machine has", 8, 8, 1000},
    {"fewer threads than the arena has", 4, 2, 1000},
    {"more threads than the arena has", 2, 64, 1000},
};

TEST(ArenaTest, RunsEveryPieceOnce) {
  for (const LoopCase& loop : kLoops) {
    SCOPED_TRACE(loop.why);
    Arena arena(loop.threads);
    std::vector<std::atomic<int>> runs(loop.count);
    arena.ParallelFor(loop.count, loop.max_threads, [&](int64_t i) { ++runs[i]; });
    for (const std::atomic<int>& count : runs) ASSERT_EQ(count, 1);
  }
}

TEST(ArenaTest, NoTwoThreadsUseOneSlotAtTheSameTime) {
  constexpr int kSlots = 3;
  for (const LoopCase& loop : kLoops) {
    SCOPED_TRACE(loop.why);
    Arena arena(loop.threads);
    std::vector<std::atomic<int>> runs(loop.count), in_slot(kSlots);
    std::atomic<int> shared = 0;
    const Team team(&arena, loop.max_threads);
    ParallelForInSlots(team, loop.count, kSlots, [&](int64_t i, int64_t slot) {
      ASSERT_TRUE(slot >= 0 && slot < kSlots) << slot;
      shared += in_slot[slot]++ > 0 ? 1 : 0;
      std::this_thread::yield();
      ++runs[i];
      --in_slot[slot];
    });
    for (const std::atomic<int>& count : runs) ASSERT_EQ(count, 1);
    EXPECT_EQ(shared, 0);
  }
}

TEST(ArenaTest, UsesNoMoreThreadsThanAllowed) {
  Arena arena(4);
  Mutex mutex;
  std::set<std::thread::id> threads;
  arena.ParallelFor(200, 2, [&](int64_t) {
    MutexLock lock(&mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_LE(threads.size(), 2u);
}

// Every piece waits for the other: two threads run at once, whatever the machine has.
TEST(ArenaTest, HasAllItsThreads) {
  Arena arena(2);
  Meeting both(2);
  std::atomic<int> met = 0;
  arena.ParallelFor(2, 2, [&](int64_t) { met += both.AllCome(); });
  EXPECT_EQ(met, 2);
}

int NicenessOfThisThread() {
  return getpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)));
}

// Its threads are not started by the first work, whose thread may have a low priority.
TEST(ArenaTest, ThreadsHaveThePriorityOfTheThreadThatMadeTheArena) {
  constexpr int kThreads = 12;  // more than any test before has started
  Arena arena(kThreads);
  Meeting all(kThreads);
  std::atomic<int> lower = 0, met = 0;
  std::thread([&] {
    ASSERT_EQ(setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), 15), 0);
    const std::thread::id caller = std::this_thread::get_id();
    arena.ParallelFor(kThreads, kThreads, [&](int64_t) {
      met += all.AllCome();
      lower += std::this_thread::get_id() != caller && NicenessOfThisThread() == 15 ? 1 : 0;
    });
  }).join();
  EXPECT_EQ(met, kThreads);
  EXPECT_EQ(lower, 0);
}

TEST(ArenaTest, EnqueuedTasksHaveAllThreadsToo) {
  Meeting both(2);
  std::atomic<int> met = 0;
  {
    Arena arena(2);
    for (int i = 0; i < 2; ++i) {
      arena.Enqueue([&] { met += both.AllCome(); });
    }
  }
  EXPECT_EQ(met, 2);
}

TEST(ArenaTest, LoopsNest) {
  Arena arena(2);
  std::atomic<int> runs = 0;
  arena.ParallelFor(10, 2, [&](int64_t) { arena.ParallelFor(10, 2, [&](int64_t) { ++runs; }); });
  EXPECT_EQ(runs, 100);
}

TEST(ArenaTest, ManyOutsidersLoopAtOnce) {
  Arena arena(2);
  std::atomic<int64_t> sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        arena.ParallelFor(16, 2, [&](int64_t piece) { sum += piece; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 8 * 200 * 120);
}

TEST(ArenaTest, MoreCallersThanItHasThreads) {
  Arena arena(2);
  std::atomic<int64_t> pieces{0};
  std::vector<std::thread> outsiders;
  for (int i = 0; i < 6; ++i) {
    outsiders.emplace_back([&] {
      for (int round = 0; round < 20; ++round) arena.ParallelFor(7, 2, [&](int64_t) { ++pieces; });
    });
  }
  for (std::thread& outsider : outsiders) outsider.join();
  EXPECT_EQ(pieces, 6 * 20 * 7);
}

// A thread that has lost its core may lose it again: the caller does not wait for it twice.
TEST(ArenaTest, AHelperThatWasLateRestsAndTakesTasksMeanwhile) {
  constexpr absl::Duration kLates[] = {absl::Milliseconds(500), absl::Milliseconds(100)};
  Meeting with_both(3);
  Arena arena(2);
  const std::thread::id caller = std::this_thread::get_id();
  absl::Time resting = absl::InfiniteFuture();  // until when both rest at least
  for (const absl::Duration late : kLates) {    // one thread of the arena, then the other
    Meeting both(2);
    const absl::Time begin = absl::Now();
    absl::Time own_end, helper_end;
    arena.ParallelFor(2, 2, [&](int64_t) {
      EXPECT_TRUE(both.AllCome());
      const bool is_helper = std::this_thread::get_id() != caller;
      const absl::Time end = absl::Now() + late;
      while (is_helper && absl::Now() < end) continue;
      (is_helper ? helper_end : own_end) = absl::Now();
    });
    // It was late for less time where the caller was held up itself, and then rests for less.
    const absl::Duration lateness = helper_end - own_end - (own_end - begin);
    resting = std::min(resting, helper_end + lateness / 2);
  }
  std::atomic<int> helped = 0;
  for (int i = 0; i < 100; ++i) {
    arena.ParallelFor(2, 2, [&](int64_t) { helped += std::this_thread::get_id() != caller; });
  }
  for (int i = 0; i < 2; ++i) arena.Enqueue([&] { with_both.AllCome(); });
  EXPECT_TRUE(with_both.AllCome());
  if (absl::Now() < resting) {
    EXPECT_EQ(helped, 0);
  }
}

TEST(ArenaTest, ATaskHasHelpersWhileTheArenaIsDestroyed) {
  std::atomic<int> met = 0;
  Meeting both(2);
  {
    Arena arena(2);
    arena.Enqueue([&] { arena.ParallelFor(2, 2, [&](int64_t) { met += both.AllCome(); }); });
  }
  EXPECT_EQ(met, 2);
}

TEST(ArenaTest, DestructorWaitsForEnqueuedTasks) {
  std::atomic<int> runs = 0;
  {
    Arena arena(2);
    for (int i = 0; i < 1000; ++i) {
      arena.Enqueue([&] { ++runs; });
    }
  }
  EXPECT_EQ(runs, 1000);
}

TEST(ArenaTest, TaskEnqueuedByATaskRuns) {
  Meeting with_the_task(2);
  Arena arena(1);
  arena.Enqueue([&] { arena.Enqueue([&] { with_the_task.AllCome(); }); });
  EXPECT_TRUE(with_the_task.AllCome());
}

TEST(ArenaTest, AStoppedTeamLeavesOutPiecesThatHaveNotBegun) {
  Arena arena(2);
  for (const Team& team : {Team(&arena), Team::Serial()}) {
    std::atomic<bool> stop = false;
    std::atomic<int64_t> pieces = 0;
    team.Until(&stop).ParallelFor(1000000, [&](int64_t) {
      if (++pieces == 10) stop = true;
    });
    EXPECT_GE(pieces, 10);
    EXPECT_LT(pieces, 20);
    team.ParallelFor(10, [&](int64_t) { ++pieces; });
    EXPECT_GE(pieces, 20);
  }
}

// The thread that helps with the loop leaves it for the task; the loop goes on until it has run.
TEST(ArenaTest, ATaskDoesNotWaitForALoopThatHoldsEveryThread) {
  Arena arena(2);
  std::atomic<bool> enqueued = false, ran = false, stop = false;
  const absl::Time end = absl::Now() + absl::Minutes(1);
  const auto until_it_ran = [&](int64_t, int64_t) {
    if (!enqueued.exchange(true)) arena.Enqueue([&] { ran = true; });
    if (ran || absl::Now() > end) stop = true;
  };
  ParallelForInSlots(Team(&arena).Until(&stop), int64_t{1} << 50, 2, until_it_ran);
  EXPECT_TRUE(ran) << "the task waited for the loop";
}

// As many as a reference's loop over a tensor of strides 0 may have.
TEST(ArenaTest, AStoppedLoopDoesNotVisitWhatIsLeft) {
  Arena arena(2);
  for (const Team& team : {Team(&arena), Team::Serial()}) {
    std::atomic<bool> stop = false;
    std::atomic<int64_t> pieces = 0;
    team.Until(&stop).ParallelFor(int64_t{1} << 50, [&](int64_t) {
      if (++pieces != 10) return;
      stop = true;
      EXPECT_TRUE(Stopped());
    });
    EXPECT_LT(pieces, int64_t{1} << 30) << "another thread runs some more before it sees the stop";
    EXPECT_FALSE(Stopped()) << "outside its loop";
    pieces = 0;
    team.ParallelFor(10, [&](int64_t) { ++pieces; });
    EXPECT_EQ(pieces, 10) << "a loop that cannot stop";
  }
}

// While a task waits for its own loop, it must not start another request on its stack.
TEST(ArenaTest, WaitingLoopTakesNoEnqueuedTask) {
  std::atomic<int> nested = 0;
  {
    Arena arena(2);
    for (int i = 0; i < 100; ++i) {
      arena.Enqueue([&] {
        static thread_local int depth = 0;
        if (++depth > 1) ++nested;
        arena.ParallelFor(8, 2, [](int64_t) { std::this_thread::yield(); });
        --depth;
      });
    }
  }
  EXPECT_EQ(nested, 0);
}

TEST(ArenaTest, DenormalsAreFlushedInBodiesAndTasksOnly) {
  const unsigned before = _mm_getcsr();
  ASSERT_FALSE(DenormalsAreFlushed());
  std::atomic<int> flushed = 0;
  {
    Arena arena(2);
    arena.ParallelFor(100, 2, [&](int64_t) { flushed += DenormalsAreFlushed(); });
    arena.Enqueue([&] { flushed += DenormalsAreFlushed(); });
  }
  Team::Serial().ParallelFor(10, [&](int64_t) { flushed += DenormalsAreFlushed(); });
  EXPECT_EQ(flushed, 111);
  EXPECT_EQ(_mm_getcsr() & kFlushDenormals, before & kFlushDenormals);
}

TEST(TeamTest, SerialKeepsTheOrder) {
  std::vector<int64_t> order;
  Team::Serial().ParallelFor(5, [&](int64_t i) { order.push_back(i); });
  EXPECT_EQ(order, (std::vector<int64_t>{0, 1, 2, 3, 4}));
}

TEST(TeamTest, SplitsOverItsArena) {
  Arena arena(2);
  const Team team(&arena);
  EXPECT_EQ(team.threads(), 2);
  std::atomic<int> runs = 0;
  team.ParallelFor(1000, [&](int64_t) { ++runs; });
  EXPECT_EQ(runs, 1000);
}

}  // namespace
}  // namespace tilewire::threading
