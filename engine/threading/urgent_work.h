// SPDX-License-Identifier: Apache-2.0
//
// Short work on a thread beside the compute threads. While any is under way, a compute thread
// offers its core several times per millisecond, so that such work need not wait until the system
// ends the compute thread's slice of time. Compute threads keep their core otherwise: on some
// versions of Linux (6.18 among them) an offer gives away a whole slice, also to other processes.
#ifndef ENGINE_THREADING_URGENT_WORK_H_
#define ENGINE_THREADING_URGENT_WORK_H_

#include <x86intrin.h>

#include <atomic>
#include <cstdint>

namespace tilewire::threading {

// While one lives, urgent work is under way on the thread that made it, which ends it, too. Scopes
// may nest. Thread-safe in that any number of threads may have their own.
class UrgentWork {
 public:
  UrgentWork() {
    ++on_this_thread_;
    under_way_.fetch_add(1, std::memory_order_relaxed);
  }
  ~UrgentWork() {
    under_way_.fetch_sub(1, std::memory_order_relaxed);
    --on_this_thread_;
  }
  UrgentWork(const UrgentWork&) = delete;

  // Counts as under way for the next 20 milliseconds or so: where short requests come beside long
  // ones, the next one, too, is to find a core.
  static void Expect() { expected_since_.store(__rdtsc(), std::memory_order_relaxed); }
  // Until the process ends: for systems that let what has woken up wait for the end of a slice.
  static void ExpectAlways() { under_way_.fetch_add(1, std::memory_order_relaxed); }

  // Whether another thread has any, or is to have some.
  static bool IsUnderWayElsewhere() {
    if (on_this_thread_ > 0) return false;
    return under_way_.load(std::memory_order_relaxed) > 0 ||
           __rdtsc() - expected_since_.load(std::memory_order_relaxed) < kCycles;
  }

 private:
  static constexpr uint64_t kCycles = 50'000'000;

  alignas(64) static inline std::atomic<int> under_way_{0};
  alignas(64) static inline std::atomic<uint64_t> expected_since_{0};
  static inline thread_local int on_this_thread_ = 0;
};

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_URGENT_WORK_H_
