// SPDX-License-Identifier: Apache-2.0
#ifndef SERVICE_SCHEDULE_DISPATCHER_LOAD_H_
#define SERVICE_SCHEDULE_DISPATCHER_LOAD_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace tilewire::service {

// How much waits and runs, for monitoring.
struct DispatcherLoad {
  struct OfModel {
    int64_t waiting = 0, running = 0;
    absl::Duration predicted_wait;  // of a request that came now
  };
  int64_t busy = 0;                       // tokens that run work
  std::map<std::string, OfModel> models;  // those of which something waits or runs
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_DISPATCHER_LOAD_H_
