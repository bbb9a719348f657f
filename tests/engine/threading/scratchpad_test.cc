// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/scratchpad.h"

#include <barrier>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

ScratchpadPool::Lease TakeOrDie(ScratchpadPool& pool, size_t bytes) {
  absl::StatusOr<ScratchpadPool::Lease> lease = pool.Take(bytes);
  EXPECT_TRUE(lease.ok()) << lease.status();
  return *std::move(lease);
}

TEST(ScratchpadPoolTest, BuffersAreAlignedAndLargeEnough) {
  ScratchpadPool pool;
  for (size_t bytes : {1, 63, 64, 4096, 4097, 1 << 20}) {
    ScratchpadPool::Lease lease = TakeOrDie(pool, bytes);
    EXPECT_GE(lease.size(), bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(lease.data()) % 64, 0u);
    std::memset(lease.data(), 1, bytes);
  }
}

TEST(ScratchpadPoolTest, NoBytesNeedNoBuffer) {
  ScratchpadPool pool;
  EXPECT_EQ(TakeOrDie(pool, 0).data(), nullptr);
  EXPECT_EQ(pool.idle_bytes(), 0);
}

TEST(ScratchpadPoolTest, SameWorkGetsTheSameBuffer) {
  ScratchpadPool pool;
  const std::byte* first = TakeOrDie(pool, 10000).data();
  EXPECT_EQ(TakeOrDie(pool, 10000).data(), first);
}

TEST(ScratchpadPoolTest, TakesTheSmallestThatIsLargeEnough) {
  ScratchpadPool pool;
  const std::byte* middle = nullptr;
  {
    ScratchpadPool::Lease large = TakeOrDie(pool, 1 << 20);
    ScratchpadPool::Lease small = TakeOrDie(pool, 1 << 10);
    ScratchpadPool::Lease medium = TakeOrDie(pool, 1 << 15);
    middle = medium.data();
  }
  EXPECT_EQ(TakeOrDie(pool, 1 << 14).data(), middle);
}

TEST(ScratchpadPoolTest, CountsAndBoundsWhatItKeeps) {
  ScratchpadPool pool(/*max_idle_bytes=*/100000);
  {
    ScratchpadPool::Lease kept = TakeOrDie(pool, 81920);
    ScratchpadPool::Lease freed = TakeOrDie(pool, 81920);
    EXPECT_EQ(pool.leased_bytes(), 2 * 81920);
    EXPECT_EQ(pool.idle_bytes(), 0);
  }
  EXPECT_EQ(pool.leased_bytes(), 0);
  EXPECT_EQ(pool.idle_bytes(), 81920);
}

// Memory that sixteen threads hold at once goes back to the system, but for what may stay idle.
TEST(ScratchpadPoolTest, MemoryOfAPeakReturns) {
  constexpr int64_t kMegabyte = 1 << 20, kThreads = 16;
  ScratchpadPool pool(/*max_idle_bytes=*/4 * kMegabyte);
  std::barrier all_hold(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ScratchpadPool::Lease lease = TakeOrDie(pool, kMegabyte);
      all_hold.arrive_and_wait();
      EXPECT_EQ(pool.leased_bytes(), kThreads * kMegabyte);
      all_hold.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.leased_bytes(), 0);
  EXPECT_LE(pool.idle_bytes(), 4 * kMegabyte);
}

TEST(ScratchpadPoolTest, IdleBuffersMakeWayForOnesInUse) {
  constexpr size_t kSize = 1 << 20;
  ScratchpadPool pool;
  pool.Bound(4 * kSize);
  TakeOrDie(pool, 3 * kSize);
  EXPECT_EQ(pool.idle_bytes(), 3 * kSize);
  {
    // The idle one is too large for it.
    const ScratchpadPool::Lease small = TakeOrDie(pool, kSize / 2);
    EXPECT_EQ(pool.idle_bytes(), 3 * kSize) << "they fit together";
    const ScratchpadPool::Lease larger = TakeOrDie(pool, 4 * kSize);
    EXPECT_EQ(pool.idle_bytes(), 0);
    EXPECT_EQ(pool.leased_bytes(), 4 * kSize + kSize / 2) << "none is refused";
  }
  EXPECT_LE(pool.idle_bytes(), 4 * kSize);
}

TEST(ScratchpadPoolTest, IdleBuffersMakeWayForWhatOthersHold) {
  constexpr int64_t kSize = 1 << 20;
  ScratchpadPool pool;
  pool.Bound(4 * kSize);
  TakeOrDie(pool, 3 * kSize);
  pool.CountBeside(kSize);
  EXPECT_EQ(pool.idle_bytes(), 3 * kSize) << "they fit together";
  TakeOrDie(pool, 3 * kSize);
  EXPECT_EQ(pool.idle_bytes(), 3 * kSize) << "the same buffer again";
  pool.CountBeside(1);
  EXPECT_EQ(pool.idle_bytes(), 0);
  TakeOrDie(pool, 3 * kSize);
  EXPECT_EQ(pool.idle_bytes(), 0) << "nor is it kept";
  pool.CountBeside(-1);
  TakeOrDie(pool, 3 * kSize);
  EXPECT_EQ(pool.idle_bytes(), 3 * kSize);
}

// The activations of a volume: cleared in every run, they would cost as much as what it computes.
TEST(ScratchpadPoolTest, BuffersOfGigabytesAreKept) {
  ScratchpadPool pool;
  TakeOrDie(pool, size_t{3} << 30);
  EXPECT_EQ(pool.idle_bytes(), int64_t{3} << 30);
  TakeOrDie(pool, size_t{5} << 30);
  EXPECT_EQ(pool.idle_bytes(), int64_t{3} << 30);
}

TEST(ScratchpadPoolTest, ABufferThatReturnsAboveTheBoundIsFreed) {
  ScratchpadPool pool;
  pool.Bound(8192);
  const ScratchpadPool::Lease held = TakeOrDie(pool, 8192);
  TakeOrDie(pool, 4096);
  EXPECT_EQ(pool.idle_bytes(), 0);
}

// One large request must not hold its memory for ever after.
TEST(ScratchpadPoolTest, WhatIsNoLongerNeededReturns) {
  ScratchpadPool pool;
  TakeOrDie(pool, 1 << 20);
  for (uint64_t i = 0; i < ScratchpadPool::kKeptTakes; ++i) TakeOrDie(pool, 4096);
  EXPECT_EQ(pool.idle_bytes(), (1 << 20) + 4096);
  TakeOrDie(pool, 4096);
  EXPECT_EQ(pool.idle_bytes(), 4096);
}

TEST(ScratchpadPoolTest, WhatNothingHasUsedForAWhileIsFreed) {
  ScratchpadPool pool;
  TakeOrDie(pool, 4096);
  EXPECT_EQ(pool.FreeIdle(absl::Hours(1)), 0);
  EXPECT_EQ(pool.idle_bytes(), 4096);
  EXPECT_EQ(pool.FreeIdle(-absl::Seconds(1)), 4096);
  EXPECT_EQ(pool.idle_bytes(), 0);
}

TEST(ScratchpadPoolTest, MovedLeasesReturnOnce) {
  ScratchpadPool pool;
  {
    ScratchpadPool::Lease first = TakeOrDie(pool, 4096);
    ScratchpadPool::Lease second = std::move(first);
    ScratchpadPool::Lease third = TakeOrDie(pool, 4096);
    third = std::move(second);
    EXPECT_EQ(pool.leased_bytes() + pool.idle_bytes(), 2 * 4096);
  }
  EXPECT_EQ(pool.leased_bytes(), 0);
  EXPECT_EQ(pool.idle_bytes(), 2 * 4096);
}

TEST(ScratchpadPoolTest, HugeSizeIsResourceExhausted) {
  ScratchpadPool pool;
  EXPECT_EQ(pool.Take(SIZE_MAX - 1).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ScratchpadPoolTest, NoTwoThreadsShareABuffer) {
  ScratchpadPool pool;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&pool, t] {
      for (int i = 0; i < 500; ++i) {
        ScratchpadPool::Lease lease = TakeOrDie(pool, 256);
        std::memset(lease.data(), t, 256);
        std::this_thread::yield();
        for (int b = 0; b < 256; ++b) ASSERT_EQ(lease.data()[b], std::byte(t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pool.leased_bytes(), 0);
}

}  // namespace
}  // namespace tilewire::testing
