// SPDX-License-Identifier: Apache-2.0
//
// Durations and their percentiles, exact: every value is kept. Thread-compatible.
#ifndef CLIENT_LATENCIES_H_
#define CLIENT_LATENCIES_H_

#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tilewire::client {

class Latencies {
 public:
  void Add(absl::Duration latency) { values_.push_back(latency); }
  void Merge(const Latencies& other);
  size_t count() const { return values_.size(); }

  // The smallest value that at least `percent` of 100 of them do not exceed (nearest rank); zero if
  // there are none.
  absl::Duration Percentile(double percent) const;

  // "p50 1.23 ms, p90 1.50 ms, p99 2.01 ms, max 3.00 ms"
  std::string ToString() const;

 private:
  std::vector<absl::Duration> values_;
};

// "1.23 ms"
std::string FormatMs(absl::Duration duration);

}  // namespace tilewire::client

#endif  // CLIENT_LATENCIES_H_
