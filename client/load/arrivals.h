// SPDX-License-Identifier: Apache-2.0
//
// When the requests of an open loop are to be sent: evenly, or as a Poisson process, whose gaps are
// independent and exponentially distributed, as if many clients called without knowing of each
// other. Where the rate changes, the gaps are stretched by the profile: the n-th request is due
// when the profile expects n of them, n being a whole number or a sum of n exponential gaps of
// mean 1. The same seed gives the same times. Thread-compatible.
#ifndef CLIENT_LOAD_ARRIVALS_H_
#define CLIENT_LOAD_ARRIVALS_H_

#include <cstdint>
#include <random>
#include <utility>

#include "absl/time/time.h"
#include "client/load/rate_profile.h"

namespace tilewire::client {

enum class ArrivalKind : uint8_t { kPoisson, kConstant };

class Arrivals {
 public:
  Arrivals(RateProfile profile, ArrivalKind kind, uint64_t seed)
      : profile_(std::move(profile)), kind_(kind), random_(seed) {}

  // The next time, counted from the start of the loop.
  absl::Duration Next() {
    count_ += kind_ == ArrivalKind::kConstant ? 1 : exponential_(random_);
    return profile_.TimeOf(count_);
  }

 private:
  const RateProfile profile_;
  const ArrivalKind kind_;
  std::mt19937_64 random_;
  std::exponential_distribution<double> exponential_;
  double count_ = 0;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_ARRIVALS_H_
