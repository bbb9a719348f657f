// SPDX-License-Identifier: Apache-2.0
//
// Durations by size: log-linear, 35 buckets for each power of ten from 1 us to 100 s, none wider
// than a tenth of its lower end. Buckets hold (lower, upper], and 1, 2 and 5 times each power of
// ten are ends of buckets, so that counts up to these are exact. Recording is two additions to
// numbers that a thread shares with few others: no lock, and no allocation but for the first value
// of a shard. Thread-safe.
#ifndef SERVICE_OBSERVE_HISTOGRAM_H_
#define SERVICE_OBSERVE_HISTOGRAM_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "service/observe/thread_shard.h"

namespace tilewire::service {

class Histogram {
 public:
  static constexpr size_t kBucketsOfADecade = 35, kDecades = 8;
  // The first holds what is shorter, the last what is longer.
  static constexpr size_t kBuckets = kDecades * kBucketsOfADecade + 2;

  struct Sums {
    std::array<int64_t, kBuckets> buckets = {};
    int64_t count = 0, ns = 0;
    // How many were not longer than an end of a bucket.
    int64_t CountUpTo(absl::Duration end) const;
  };

  Histogram();
  ~Histogram();
  Histogram(const Histogram&) = delete;

  void Record(absl::Duration duration);
  // May lack the last few of those that others record meanwhile; `count` is the sum of the buckets.
  Sums Sum() const;

  static size_t BucketOf(int64_t ns);
  // The longest duration that the bucket holds; the largest number for the last one.
  static int64_t EndOf(size_t bucket);

 private:
  struct alignas(64) Shard {
    std::array<std::atomic<int64_t>, kBuckets> buckets = {};
    std::atomic<int64_t> ns{0};
  };

  Shard& ShardFor(size_t shard);

  Shard first_;  // the one to use, too, when no memory is left for another
  std::array<std::atomic<Shard*>, kThreadShards> shards_ = {};
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_HISTOGRAM_H_
