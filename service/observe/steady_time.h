// SPDX-License-Identifier: Apache-2.0
//
// Times to measure and to wait by: the time of day when it was first asked for, and from then on
// what has passed, whatever happens to the machine's clock. Thread-safe.
#ifndef SERVICE_OBSERVE_STEADY_TIME_H_
#define SERVICE_OBSERVE_STEADY_TIME_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace tilewire::service {

// The steady clock's point of time.
inline absl::Time SteadyTime(std::chrono::steady_clock::time_point at) {
  static const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  static const absl::Time begin_of_day = absl::Now();
  return begin_of_day + absl::FromChrono(at - begin);
}

inline absl::Time SteadyNow() { return SteadyTime(std::chrono::steady_clock::now()); }

// A time of day as it lies from now, in the terms of SteadyNow().
inline absl::Time Steady(absl::Time time_of_day) {
  return SteadyNow() + (time_of_day - absl::Now());
}

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_STEADY_TIME_H_
