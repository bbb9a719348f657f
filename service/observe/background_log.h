// SPDX-License-Identifier: Apache-2.0
//
// The log of the process: lines on standard error, written by a thread of its own. Where standard
// error is a pipe that nothing reads, lines are lost, and no request waits; the next line that can
// be written says how many were lost. Thread-safe.
#ifndef SERVICE_OBSERVE_BACKGROUND_LOG_H_
#define SERVICE_OBSERVE_BACKGROUND_LOG_H_

#include <string>

#include "absl/time/time.h"

namespace tilewire::service {

// From now on spdlog's functions write there what is at least of this level. To be called once; the
// thread inherits the caller's mask of signals.
void StartLog(const std::string& level);

// Whether all lines until now have been written; waits `longest` for that. True before StartLog().
// After false, standard error is not to be written to, and the process is to end by _exit(): both
// would wait.
bool FlushLog(absl::Duration longest);

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_BACKGROUND_LOG_H_
