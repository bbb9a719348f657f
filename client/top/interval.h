// SPDX-License-Identifier: Apache-2.0
//
// The work of a server between two of its statuses. Pure functions; thread-safe.
//
//   rate      = (count after - count before) / (time after - time before), by the server's clock
//   cores     = seconds that ended requests held cores / seconds
//   quantile  from the differences of the buckets of durations: the upper end of the bucket that
//             holds it, so never too low, and at most a tenth too high
#ifndef CLIENT_TOP_INTERVAL_H_
#define CLIENT_TOP_INTERVAL_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "protos/model_service.pb.h"

namespace tilewire::client {

// One version's. A value that there is not, such as a quantile of no requests, is not told.
struct VersionInterval {
  std::string version, state, reason;
  double requests_per_s = 0, rows_per_s = 0;  // of those that were answered
  double errors_per_s = 0;                    // without those that were refused
  double refused_per_s = 0;
  std::optional<double> p50_ms, p99_ms;
  std::optional<double> queue_share;  // of the time of its requests, waiting
  double cores = 0;
  int64_t held_bytes = 0;
};

struct ModelInterval {
  std::string name;
  int64_t waiting = 0, running = 0;  // now, of all its versions
  std::vector<VersionInterval> versions;
};

struct TopInterval {
  std::string server_version, state;
  absl::Time at;
  absl::Duration length, uptime;
  int cores = 0;
  int64_t cores_busy = 0;      // now
  double throttled_share = 0;  // of the cores' time
  // The part of the last minute that compute threads which could run waited for a CPU.
  std::optional<double> cpu_wait_share;
  int64_t work_bytes = 0, work_limit_bytes = 0, held_bytes = 0;
  int64_t connections = 0;
  double unnamed_errors_per_s = 0;  // of requests that named no version that is served
  std::vector<ModelInterval> models;

  double RequestsPerSecond() const;
  double Cores() const;
};

// Where the server began after `before`, or the version did, since that.
//   kFailedPrecondition  the two are of different servers that run side by side
absl::StatusOr<TopInterval> IntervalBetween(const v1::ServerStatusResponse& before,
                                            const v1::ServerStatusResponse& after);
// Since the server began.
TopInterval IntervalSinceStart(const v1::ServerStatusResponse& status);

}  // namespace tilewire::client

#endif  // CLIENT_TOP_INTERVAL_H_
