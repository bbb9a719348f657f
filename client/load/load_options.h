// SPDX-License-Identifier: Apache-2.0
//
// The requests of a load, who sends them and when, how long, and who is told meanwhile. load.h
// explains closed and open loops.
#ifndef CLIENT_LOAD_LOAD_OPTIONS_H_
#define CLIENT_LOAD_LOAD_OPTIONS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/client.h"
#include "client/load/answer_check.h"
#include "client/load/arrivals.h"
#include "client/load/rate_profile.h"
#include "client/load/report/report.h"
#include "client/load/think_time.h"

namespace tilewire::client {

// Requests of one kind: a model and inputs of one shape.
struct LoadPart {
  std::string name;  // in reports
  double share = 1;  // of all requests, relative to the other parts' shares
  std::string model;
  std::vector<std::vector<Tensor>> inputs;  // requests to send in turn; at least one
  InferOptions infer;                       // its deadline, outputs and version
  int64_t rows = 1;                         // per request
};

struct LoadOptions {
  std::vector<LoadPart> parts;  // at least one; which is next is drawn by their shares
  int concurrency = 1;          // callers of a closed loop
  absl::Duration think;         // their mean pause between an answer and the next request
  ThinkKind think_kind = ThinkKind::kExponential;
  RateProfile profile;  // of an open loop; empty: a closed loop
  ArrivalKind arrivals = ArrivalKind::kPoisson;
  uint64_t seed = 1;         // of the arrivals, of the pauses and of the mix
  int connections = 1;       // of an open loop
  int threads = 1;           // that take answers
  int max_waiting = 10'000;  // answers that an open loop waits for at most; see LoadReport::unsent
  absl::Duration warm_up;    // requests that are due within it are sent, checked and not counted
  absl::Duration duration = absl::Seconds(10);  // after the warm-up; used when `requests` is 0
  int64_t requests = 0;
  bool split = false;                       // ask the server where the time of each request went
  double tolerance = 0;                     // of AnswerCheck
  const GoldenAnswers* golden = nullptr;    // what answers are compared with, if not the first
  GoldenAnswers* recorded = nullptr;        // becomes the first answers
  const std::atomic<bool>* stop = nullptr;  // once true, ends the load early

  // The load ends early once more than `most_over_bound` requests took or have waited longer.
  absl::Duration latency_bound = absl::InfiniteDuration();
  int64_t most_over_bound = std::numeric_limits<int64_t>::max();

  bool is_open() const { return !profile.empty(); }
};

// Called about ten times a second from the thread that runs the load. Windows are not in it.
using LoadProgress = std::function<void(const LoadReport& so_far)>;

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_LOAD_OPTIONS_H_
