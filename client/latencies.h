// SPDX-License-Identifier: Apache-2.0
//
// A histogram of durations. Each doubling of the duration is cut into kSteps buckets of equal
// width, so that a percentile is too large by less than 1 / kSteps of itself; the mean, the
// smallest and the largest duration are exact. Takes a fixed amount of memory, however many
// durations are added. Thread-compatible.
#ifndef CLIENT_LATENCIES_H_
#define CLIENT_LATENCIES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"

namespace tilewire::client {

class Latencies {
 public:
  static constexpr int kStepBits = 9;
  static constexpr int64_t kSteps = int64_t{1} << kStepBits;

  void Add(absl::Duration latency);
  void Merge(const Latencies& other);
  int64_t count() const { return count_; }
  absl::Duration Mean() const;  // zero if there are none
  absl::Duration sum() const { return sum_; }

  // No less than the smallest duration that at least `percent` of 100 of them do not exceed
  // (nearest rank); zero if there are none.
  absl::Duration Percentile(double percent) const;

  // A percentile says something from so many durations on: 100 for p99, 1000 for p99.9. Of fewer it
  // is their largest.
  static int64_t FewestFor(double percent);
  bool Knows(double percent) const { return count_ > 0 && count_ >= FewestFor(percent); }
  // How many of them are beyond the percentile, by rank: 5 of 500 beyond p99.
  int64_t CountBeyond(double percent) const;
  // How many are longer than `bound`; those in the bucket of `bound` are not.
  int64_t CountAbove(absl::Duration bound) const;

  // "p50 1.23 ms, p90 1.50 ms, p99 2.01 ms, p99.9 2.51 ms, max 3.00 ms", without the percentiles
  // that so few durations do not tell.
  std::string ToString() const;

  // Number and count of each bucket that is not empty, ascending; with the sum, the smallest and
  // the largest duration they make the same histogram again. Buckets beyond 13 days become that.
  std::vector<std::pair<size_t, int64_t>> Buckets() const;
  static Latencies FromBuckets(const std::vector<std::pair<size_t, int64_t>>& buckets,
                               absl::Duration sum, absl::Duration smallest, absl::Duration largest);
  static absl::Duration EndOfBucket(size_t bucket);  // the largest duration that falls into it

 private:
  std::vector<int64_t> buckets_;  // as many as are needed
  int64_t count_ = 0;
  absl::Duration sum_, smallest_ = absl::InfiniteDuration(), largest_;
};

// "812 ns", "41.5 us", "1.23 ms", "1.87 s": three digits.
std::string LatencyText(absl::Duration duration);
// A percentile; "-" if there are too few durations for it.
std::string PercentileText(const Latencies& latencies, double percent);

}  // namespace tilewire::client

#endif  // CLIENT_LATENCIES_H_
