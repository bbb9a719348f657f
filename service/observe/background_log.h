// SPDX-License-Identifier: Apache-2.0
//
// The log of the process: lines on standard error, written by threads of its own. Where standard
// error is a pipe that nothing reads, lines are lost, and no request waits; the next line that can
// be written says how many were lost. Thread-safe.
#ifndef SERVICE_OBSERVE_BACKGROUND_LOG_H_
#define SERVICE_OBSERVE_BACKGROUND_LOG_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace tilewire::service {

// From now on spdlog's functions write there what is at least of this level, in the form that
// SetLogForm() has set. To be called once; the threads inherit the caller's mask of signals.
void StartLog(const std::string& level);

// The engine's verbose lines (engine/base/line_writer.h) go there too, as they are. They have a
// thread and a queue of their own, so that a flood of them costs no other line.
void StartVerboseLog();

// Whether all lines until now have been written; waits `longest` for that. True before StartLog().
// After false, standard error is not to be written to, and the process is to end by _exit(): both
// would wait.
bool FlushLog(absl::Duration longest);

// The lines, verbose ones too, that were lost as far as a later line has said so.
int64_t LostLogLines();

// A line that was written.
struct LoggedLine {
  absl::Time at;
  std::string level, text;
};
// The latest warnings and errors, the newest first, kMostWarnings at most.
inline constexpr size_t kMostWarnings = 20;
std::vector<LoggedLine> RecentWarnings();

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_BACKGROUND_LOG_H_
