// SPDX-License-Identifier: Apache-2.0
//
// The measurements of a load. Durations are in histograms, so that reports of several generators
// can be merged exactly.
#ifndef CLIENT_LOAD_REPORT_REPORT_H_
#define CLIENT_LOAD_REPORT_REPORT_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/latencies.h"

namespace tilewire::client {

// A second of a load; the last one may be shorter.
struct LoadWindow {
  double start_s = 0, length_s = 1;  // from when counting began
  int64_t answered = 0, errors = 0;  // in this second
  int64_t waiting = 0;               // answers outstanding when it ended
  absl::Duration p50, p99, largest;  // of its answers
  // Each answer's, if there are too few for a p99: so that seconds can be joined for it.
  std::vector<absl::Duration> latencies;

  double end_s() const { return start_s + length_s; }
};

// The requests of one kind, where a load mixes several.
struct PartReport {
  std::string name;
  int64_t answered = 0, mismatches = 0, errors = 0;
  Latencies latencies;
};

// Where the time between sending and the answer went, as far as the server says it. What is left of
// it when the server's own times are taken away is `network`: the wire, both transports, and
// waiting in this client.
struct ServerTimes {
  Latencies queue, reorder, compute, encode, network;
};

struct ServerTime {
  const char* name;
  Latencies ServerTimes::*latencies;
};

// In the order in which a request meets them.
inline constexpr ServerTime kServerTimes[] = {{"queue", &ServerTimes::queue},
                                              {"reorder", &ServerTimes::reorder},
                                              {"compute", &ServerTimes::compute},
                                              {"encode", &ServerTimes::encode},
                                              {"network", &ServerTimes::network}};

struct LoadReport {
  std::string name;           // "4 callers", "open loop of 200/s (poisson)"
  double offered = 0;         // requests per second of an open loop of constant rate, else 0
  int connections = 0;        // in a closed loop: callers
  absl::Duration think;       // of a closed loop's callers, between an answer and the next request
  double rows = 1;            // per request, on average
  absl::Time started;         // when counting began
  bool changes = false;       // the rate changes by intention
  std::string ended_because;  // of a load that was ended early, else empty

  Latencies latencies;  // of answers: from when the request was due
  Latencies service;    // of answers: from when it was sent
  Latencies lateness;   // of requests: from when it was due to when it was sent
  ServerTimes server;   // of answers that say it
  absl::Duration elapsed;
  absl::Duration cpu;  // that this process used meanwhile
  int threads = 1;     // of this client, that could use it
  int64_t answered = 0, mismatches = 0;
  int64_t refusals = 0;  // errors with which the server asked for a pause
  int64_t unsent = 0;    // requests that were due while too many answers were outstanding
  int64_t waiting = 0;   // answers outstanding
  std::map<absl::StatusCode, int64_t> errors;
  std::string first_error;  // of the server, or what differed
  std::vector<LoadWindow> windows;
  std::vector<PartReport> parts;

  int64_t error_count() const;
  // Requests that did not get the right answer: errors, mismatches and what was not sent.
  int64_t failed_count() const { return error_count() + mismatches + unsent; }
  double rate() const;   // answers per second
  double cores() const;  // that this process used
  bool ended_early() const { return !ended_because.empty(); }
  bool is_open() const { return offered > 0 || changes; }
  bool ok() const { return failed_count() == 0 && answered > 0; }
  // Adds what another generator measured at the same time. Percentiles of a second become the
  // larger ones, unless both have few answers in it: its histogram is not kept.
  void Merge(const LoadReport& other);
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_REPORT_H_
