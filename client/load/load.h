// SPDX-License-Identifier: Apache-2.0
//
// Calls one model again and again and measures. Requests are serialized once and sent
// asynchronously, so that few threads carry many of them.
//
// A closed loop has `concurrency` callers, each with a connection of its own, which send their next
// request when the last is answered; one that was refused with a pushback (the trailing metadata
// grpc-retry-pushback-ms) waits that long. It measures what the server can do, but a pause of the
// server delays only the callers that wait for it: requests that would have met the pause are not
// sent, and the percentiles look better than what independent users see.
//
// An open loop sends at a given rate whatever the server does, and counts latency from the time at
// which a request was to be sent.
#ifndef CLIENT_LOAD_LOAD_H_
#define CLIENT_LOAD_LOAD_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client.h"
#include "client/latencies.h"
#include "client/load/arrivals.h"

namespace tilewire::client {

struct LoadOptions {
  std::string model;
  std::vector<std::vector<Tensor>> inputs;  // requests to send in turn
  InferOptions infer;
  int concurrency = 1;  // callers of a closed loop
  double rate = 0;      // requests per second of an open loop; 0: a closed loop
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  uint64_t seed = 1;         // of the arrivals
  int connections = 1;       // of an open loop
  int max_waiting = 10'000;  // answers that an open loop waits for at most; see LoadReport::unsent
  absl::Duration warm_up;    // requests that are due within it are sent, checked and not counted
  absl::Duration duration = absl::Seconds(10);  // after the warm-up; used when `requests` is 0
  int64_t requests = 0;
  const std::atomic<bool>* stop = nullptr;  // once true, ends the load early
};

struct LoadReport {
  Latencies latencies;  // of answers: from when the request was due
  Latencies service;    // of answers: from when it was sent
  Latencies lateness;   // of requests: from when it was due to when it was sent
  absl::Duration elapsed;
  absl::Duration cpu;  // that this process used meanwhile
  int64_t answered = 0, mismatches = 0;
  int64_t unsent = 0;  // requests that were due while `max_waiting` answers were outstanding
  std::map<absl::StatusCode, int64_t> errors;
  std::string first_error;  // of the server, or what differed

  int64_t error_count() const;
  double rate() const;  // answers per second
  bool ok() const { return errors.empty() && mismatches == 0 && unsent == 0 && answered > 0; }
};

using ClientFactory = std::function<absl::StatusOr<std::unique_ptr<Client>>()>;
// Called about ten times a second from the thread that runs the load.
using LoadProgress = std::function<void(const LoadReport& so_far)>;

// A status that is not OK: a connection could not be made. What requests met is in the report. A
// closed loop ends early if the first hundred requests all fail.
absl::StatusOr<LoadReport> RunLoad(const ClientFactory& connect, const LoadOptions& options,
                                   const LoadProgress& progress);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_LOAD_H_
