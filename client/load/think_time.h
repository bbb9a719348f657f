// SPDX-License-Identifier: Apache-2.0
//
// How long a caller of a closed loop pauses between an answer and its next request, as a person
// does who looks at it first: always as long, or exponentially distributed, so that callers do not
// keep step with each other. With N callers, answers in R and a mean pause of Z, at most
// N / (R + Z) requests per second are sent. The same seed gives the same pauses. Thread-compatible.
#ifndef CLIENT_LOAD_THINK_TIME_H_
#define CLIENT_LOAD_THINK_TIME_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace tilewire::client {

enum class ThinkKind : uint8_t { kExponential, kConstant };

class ThinkTime {
 public:
  ThinkTime(absl::Duration mean, ThinkKind kind, uint64_t seed)
      : mean_(mean), kind_(kind), random_(seed) {}

  absl::Duration Next() {
    if (mean_ == absl::ZeroDuration() || kind_ == ThinkKind::kConstant) return mean_;
    return mean_ * exponential_(random_);
  }

  // Before a caller's first request: callers that begin together would otherwise stay together.
  absl::Duration First() {
    return kind_ == ThinkKind::kConstant ? mean_ * share_(random_) : Next();
  }

 private:
  const absl::Duration mean_;
  const ThinkKind kind_;
  std::mt19937_64 random_;
  std::exponential_distribution<double> exponential_;
  std::uniform_real_distribution<double> share_;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_THINK_TIME_H_
