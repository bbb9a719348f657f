// SPDX-License-Identifier: Apache-2.0
//
// Counts what becomes of the requests of one load, second by second. Thread-compatible.
#ifndef CLIENT_LOAD_LOAD_TALLY_H_
#define CLIENT_LOAD_LOAD_TALLY_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/load/load_options.h"
#include "client/load/report/report.h"
#include "client/load/report/server_split.h"

namespace tilewire::client {

struct Outcome {
  size_t part = 0;
  absl::Time due, sent, answered;
  absl::Status status;
  bool was_pushed_back = false;
  std::string difference;  // from the answer that was expected
  std::optional<ServerSplit> split;
};

class LoadTally {
 public:
  LoadTally(const LoadOptions& options, absl::Time counted_from);

  void Count(const Outcome& outcome, size_t waiting);
  void CountUnsent() { ++report_.unsent; }

  // Ends the load at `now`: seconds in which nothing was answered are a part of it too.
  void EndEarly(absl::string_view because, absl::Time now, size_t waiting);
  // Without windows: a line of progress does not need them.
  LoadReport SoFar(absl::Time now, size_t waiting) const;
  // A load that was not ended early lasts as long as it was to, whenever its last answer came.
  LoadReport Finish();
  int64_t over_bound() const { return over_bound_; }
  int64_t answered() const { return report_.answered; }
  int64_t errors() const { return report_.error_count(); }

 private:
  void CountAnswer(const Outcome& outcome);
  void CountError(const Outcome& outcome);
  void CountSplit(const Outcome& outcome);
  // Ends the seconds before `time`, which is counted from the start.
  void CloseWindows(absl::Duration time, size_t waiting);
  void CloseWindow(double length_s, size_t waiting);

  const absl::Time counted_from_;
  const absl::Duration latency_bound_;
  const absl::Duration planned_;  // zero: until its last answer
  LoadReport report_;
  LoadWindow window_;  // the current second
  Latencies window_latencies_;
  int64_t over_bound_ = 0;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_LOAD_TALLY_H_
