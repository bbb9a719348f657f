// SPDX-License-Identifier: Apache-2.0
//
// When the requests of an open loop are to be sent: at a constant rate, or as a Poisson process of
// that rate, whose gaps are independent and exponentially distributed, as if many clients called
// without knowing of each other. The same seed gives the same times. Thread-compatible.
#ifndef CLIENT_LOAD_ARRIVALS_H_
#define CLIENT_LOAD_ARRIVALS_H_

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace tilewire::client {

enum class ArrivalKind : uint8_t { kPoisson, kConstant };

class Arrivals {
 public:
  // `rate` per second, above 0.
  Arrivals(double rate, ArrivalKind kind, uint64_t seed)
      : gap_(1 / rate), kind_(kind), random_(seed) {}

  // The next time, counted from the start of the loop.
  absl::Duration Next() {
    seconds_ += kind_ == ArrivalKind::kConstant ? gap_ : gap_ * exponential_(random_);
    return absl::Seconds(seconds_);
  }

 private:
  const double gap_;
  const ArrivalKind kind_;
  std::mt19937_64 random_;
  std::exponential_distribution<double> exponential_;
  double seconds_ = 0;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_ARRIVALS_H_
