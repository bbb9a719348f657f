// SPDX-License-Identifier: Apache-2.0
//
// Slow requests as text for people. Pure function; thread-safe.
#ifndef CLIENT_TABLES_SLOW_TEXT_H_
#define CLIENT_TABLES_SLOW_TEXT_H_

#include <string>

#include "protos/model_service.pb.h"

namespace tilewire::client {

// A line for each request: when it came, how long it took, waited and ran, how long its like run
// usually, model, version and id; below it why it was slow. At the end, whether others took the CPU
// in the last minute. In 80 columns, but for long names.
// Control characters are shown as '?'.
std::string SlowText(const v1::SlowRequestsResponse& slow);

}  // namespace tilewire::client

#endif  // CLIENT_TABLES_SLOW_TEXT_H_
