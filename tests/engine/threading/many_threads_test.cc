// SPDX-License-Identifier: Apache-2.0
//
// Arenas of tens of threads, on whatever cores there are: on a machine with few, most of the
// threads that hold the pool's one lock, or a piece of a loop, have lost their core.
#include <atomic>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "engine/threading/arena.h"
#include "engine/threading/slots.h"
#include "gtest/gtest.h"

namespace tilewire::threading {
namespace {

class ManyThreadsTest : public ::testing::TestWithParam<int> {};

// Runs `body(i)` on so many threads of the test's own.
template <typename Body>
void OnOutsiders(int count, const Body& body) {
  std::vector<std::thread> outsiders;
  for (int i = 0; i < count; ++i) outsiders.emplace_back([&body, i] { body(i); });
  for (std::thread& outsider : outsiders) outsider.join();
}

// Every piece waits for all others.
TEST_P(ManyThreadsTest, AllComeToALoop) {
  const int threads = GetParam();
  Arena arena(threads);
  std::atomic<int> come = 0, met = 0;
  const absl::Time end = absl::Now() + absl::Minutes(1);
  arena.ParallelFor(threads, threads, [&](int64_t) {
    ++come;
    while (come < threads && absl::Now() < end) std::this_thread::yield();
    met += come == threads ? 1 : 0;
  });
  EXPECT_EQ(met, threads);
}

// Loops of all sizes one after the other, most of them over before a helper has come.
TEST_P(ManyThreadsTest, ShortLoopsRunEveryPieceOnce) {
  const int threads = GetParam();
  Arena arena(threads);
  std::vector<std::atomic<int>> runs(3 * threads);
  for (int round = 0; round < 300; ++round) {
    const int count = 2 + (round * 7) % (3 * threads - 1);
    arena.ParallelFor(count, threads, [&](int64_t i) { ++runs[i]; });
    for (int i = 0; i < 3 * threads; ++i) ASSERT_EQ(runs[i].exchange(0), i < count ? 1 : 0) << i;
  }
}

// Loops from outside and from tasks, loops inside of loops, tasks from pieces, loops that stop.
TEST_P(ManyThreadsTest, EverythingAtOnce) {
  constexpr int kOutsiders = 6, kRounds = 30, kInner = 5;
  const int threads = GetParam();
  std::atomic<int64_t> pieces = 0, tasks = 0, loops_of_tasks = 0;
  {
    Arena arena(threads);
    OnOutsiders(kOutsiders, [&](int outsider) {
      for (int round = 0; round < kRounds; ++round) {
        arena.ParallelFor(threads, 2 + (outsider + round) % threads, [&](int64_t piece) {
          arena.ParallelFor(kInner, threads, [&](int64_t) { ++pieces; });
          if (piece == 0) arena.Enqueue([&] { ++tasks; });
        });
        arena.Enqueue(
            [&] { arena.ParallelFor(threads, threads, [&](int64_t) { ++loops_of_tasks; }); });
        std::atomic<bool> stop = false;
        std::atomic<int64_t> begun = 0, late = 0;  // of pieces
        const auto until_ten = [&](int64_t, int64_t) {
          if (stop) ++late;
          if (++begun == 10) stop = true;
        };
        ParallelForInSlots(Team(&arena).Until(&stop), int64_t{1} << 40, threads, until_ten);
        EXPECT_LE(late, threads);
      }
    });
  }
  EXPECT_EQ(pieces, int64_t{kOutsiders} * kRounds * threads * kInner);
  EXPECT_EQ(tasks, kOutsiders * kRounds);
  EXPECT_EQ(loops_of_tasks, int64_t{kOutsiders} * kRounds * threads);
}

TEST_P(ManyThreadsTest, EndsWhileItsThreadsLookForWork) {
  std::atomic<int> tasks = 0;
  for (int round = 0; round < 10; ++round) {
    Arena arena(GetParam());
    if (round % 2 == 0) arena.ParallelFor(GetParam(), GetParam(), [](int64_t) {});
    for (int i = 0; i < round; ++i) {
      arena.Enqueue([&] { ++tasks; });
    }
  }
  EXPECT_EQ(tasks, 45);
}

INSTANTIATE_TEST_SUITE_P(Threads, ManyThreadsTest, ::testing::Values(3, 32, 64));

}  // namespace
}  // namespace tilewire::threading
