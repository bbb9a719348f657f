// SPDX-License-Identifier: Apache-2.0
//
// Numbers that only grow, a shard per thread so that counting shares no cache line.
#ifndef SERVICE_OBSERVE_COUNTERS_H_
#define SERVICE_OBSERVE_COUNTERS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "service/observe/thread_shard.h"

namespace tilewire::service {

// Thread-safe. What is read while others count may lack the last few.
template <size_t kCounters>
class Counters {
 public:
  void Add(size_t counter, int64_t amount = 1) {
    shards_[ShardOfThread()].values[counter].fetch_add(amount, std::memory_order_relaxed);
  }

  int64_t Sum(size_t counter) const {
    int64_t sum = 0;
    for (const Shard& shard : shards_) sum += shard.values[counter].load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(64) Shard {
    std::array<std::atomic<int64_t>, kCounters> values = {};
  };

  std::array<Shard, kThreadShards> shards_;
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_COUNTERS_H_
