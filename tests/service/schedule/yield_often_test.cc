// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/yield_often.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "engine/threading/mutex.h"

namespace tilewire::service {
namespace {

using Clock = std::chrono::steady_clock;

// Computes until `done`; a thread whose core is never offered would not come out of it. It asks for
// the time because ThreadSanitizer keeps signals back until a call to the system's library.
template <typename Done>
void ComputeUntil(const Done& done) {
  while (!done()) Clock::now();
}

bool IsBlocked(int signal) {
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}

TEST(YieldOftenTest, OffersTheCoreOfAThreadThatOnlyComputes) {
  const YieldOften yields;
  ASSERT_TRUE(yields.is_active());
  ComputeUntil([&] { return yields.offers() >= 20; });
}

TEST(YieldOftenTest, EndsWithTheObject) {
  std::optional<YieldOften> yields(std::in_place);
  ComputeUntil([&] { return yields->offers() >= 2; });
  yields.reset();
  const Clock::time_point begin = Clock::now();
  ComputeUntil([&] { return Clock::now() - begin > std::chrono::milliseconds(5); });
  yields.emplace();
  EXPECT_LE(yields->offers(), 1);
}

TEST(YieldOftenTest, RestoresTheSignalsThatTheThreadBlocks) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGURG);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  {
    const YieldOften yields;
    EXPECT_FALSE(IsBlocked(SIGURG));
    ComputeUntil([&] { return yields.offers() >= 1; });
  }
  EXPECT_TRUE(IsBlocked(SIGURG));
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

// The timer goes on while the thread waits: a wait ends at its time all the same, and a thread that
// only waits has nothing to offer.
TEST(YieldOftenTest, LeavesWaitsAsTheyAre) {
  const YieldOften yields;
  threading::Mutex mutex;
  bool never = false;
  const Clock::time_point begin = Clock::now();
  threading::MutexLock lock(&mutex);
  EXPECT_FALSE(mutex.AwaitWithTimeout(absl::Condition(&never), absl::Milliseconds(20)));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(20));
}

// The bytes of a pipe arrive whole, although the thread is interrupted many times meanwhile.
TEST(YieldOftenTest, InterruptedReadsGoOn) {
  std::array<int, 2> ends;
  ASSERT_EQ(pipe(ends.data()), 0);
  const YieldOften yields;
  for (int i = 0; i < 2000 || yields.offers() < 4; ++i) {
    int read_back = -1;
    ASSERT_EQ(write(ends[1], &i, sizeof(i)), ssize_t{sizeof(i)});
    ASSERT_EQ(read(ends[0], &read_back, sizeof(read_back)), ssize_t{sizeof(read_back)});
    ASSERT_EQ(read_back, i);
  }
  close(ends[0]);
  close(ends[1]);
}

struct Contention {
  const char* name;
  int64_t wait_ns;  // for the core, after each stretch
  double least_share, most_share;
  int64_t longest_stretch_ns;
};

// A scheduler that lets the thread run until it offers its core or the next tick comes, and then
// makes it wait: the share of the time that the thread has, over many stretches.
TEST(OfferTimesTest, LeavesAShareWhateverItWaits) {
  constexpr int64_t kTick = 4'000'000, kTimer = OfferTimes::kStretchNs;
  constexpr Contention kAll[] = {
      {"an idle core", 0, 1, 1, kTimer},
      {"compute threads that give way", 1'000'000, 0.19, 0.21, kTimer},
      {"the longest wait that changes nothing", 2'000'000, 0.11, 0.12, kTimer},
      {"compute threads that do not", 16'000'000, 0.11, 0.12, 2'000'000},
      {"what a tick after each wait gives", 100'000'000, 0.038, 0.04, kTick},
      {"a machine that others have taken", 2'000'000'000, 0.0019, 0.0021, kTick},
  };
  for (const Contention& one : kAll) {
    SCOPED_TRACE(one.name);
    OfferTimes times;
    times.Begin(0, 0);
    int64_t own = 0, now = 0, longest = 0;
    for (int turn = 0; turn < 1000; ++turn) {
      int64_t ran = 0;
      bool is_due = false;
      while (ran < kTick && !is_due) {
        ran += kTimer;
        own += kTimer;
        now += kTimer;
        is_due = times.IsDue(own, now);
      }
      longest = turn == 0 ? 0 : std::max(longest, ran);  // nothing was waited before the first
      if (is_due) times.Begin(own, now);
      now += one.wait_ns;
    }
    const double share = static_cast<double>(own) / static_cast<double>(now);
    EXPECT_GE(share, one.least_share);
    EXPECT_LE(share, one.most_share);
    EXPECT_LE(longest, one.longest_stretch_ns);
  }
}

TEST(OfferTimesTest, AWaitForSomethingElseGivesNoLongerStretch) {
  OfferTimes times;
  times.Begin(0, 0);
  const int64_t waited = 100'000'000;
  EXPECT_FALSE(times.IsDue(OfferTimes::kStretchNs, waited + OfferTimes::kStretchNs));
  times.LeaveOut(waited);
  EXPECT_TRUE(times.IsDue(OfferTimes::kStretchNs, waited + OfferTimes::kStretchNs));
}

}  // namespace
}  // namespace tilewire::service
