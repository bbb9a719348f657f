// SPDX-License-Identifier: Apache-2.0
//
// The shard that a thread counts in, of every sharded number: threads take the shards in turn, and
// two may share one. Thread-safe.
#ifndef SERVICE_OBSERVE_THREAD_SHARD_H_
#define SERVICE_OBSERVE_THREAD_SHARD_H_

#include <atomic>
#include <cstddef>

namespace tilewire::service {

inline constexpr size_t kThreadShards = 16;

inline size_t ShardOfThread() {
  static std::atomic<size_t> next{0};
  thread_local const size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kThreadShards;
  return mine;
}

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_THREAD_SHARD_H_
