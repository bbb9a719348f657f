// SPDX-License-Identifier: Apache-2.0
//
// Counts the allocations of a whole process, those of its libraries included: linking
// counted_malloc.cc replaces the C library's entry points. Thread-safe.
#ifndef TESTS_BENCH_COUNTED_MALLOC_H_
#define TESTS_BENCH_COUNTED_MALLOC_H_

#include <atomic>
#include <cstdint>

namespace tilewire::bench {

struct AllocationCounts {
  static constexpr int64_t kLargeBytes = 128 << 10;
  std::atomic<int64_t> all{0};
  std::atomic<int64_t> large{0};  // of kLargeBytes and more
};

// From now on counts into `counts`, which may lie in memory that processes share; null: no longer.
void CountAllocations(AllocationCounts* counts);

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_COUNTED_MALLOC_H_
