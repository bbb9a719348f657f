// SPDX-License-Identifier: Apache-2.0
//
// The time, so that tests can set it.
#ifndef SERVICE_SCHEDULE_CLOCK_H_
#define SERVICE_SCHEDULE_CLOCK_H_

#include "absl/time/time.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const { return SteadyNow(); }
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_CLOCK_H_
