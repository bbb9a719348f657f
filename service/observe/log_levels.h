// SPDX-License-Identifier: Apache-2.0
//
// Which lines are logged, as Triton's clients see and set it: a switch per severity and a level of
// detail. Here one threshold decides, so that a switch cannot be on while a more severe one is off.
// Thread-safe.
#ifndef SERVICE_OBSERVE_LOG_LEVELS_H_
#define SERVICE_OBSERVE_LOG_LEVELS_H_

#include <cstdint>

#include "absl/status/status.h"

namespace tilewire::service {

struct LogLevels {
  bool error = true, warning = true, info = true;
  uint32_t verbose = 0;  // 1: debug, with a line for each request; 2 and above: trace
};

LogLevels CurrentLogLevels();
//   kInvalidArgument  less severe lines are wanted without the more severe ones
absl::Status CheckLogLevels(const LogLevels& levels);
// `levels` are some that CheckLogLevels() finds to be good.
void SetLogLevels(const LogLevels& levels);

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_LOG_LEVELS_H_
