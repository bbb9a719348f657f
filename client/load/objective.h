// SPDX-License-Identifier: Apache-2.0
//
// Conditions that a report must meet, such as "p99<20ms,errors=0,rate>=100".
//
//   p50, p99.9, ...  percentiles of the latency; also mean, max; with a unit: ns, us, ms, s
//   rate, rows       answers, and rows, per second
//   errors, refusals, mismatches, unsent    counts; error_share is a share of all requests
//
// with <, <=, >, >= or =. A condition on a latency is not met if nothing was answered, one
// on a percentile neither if fewer were answered than it needs (Latencies::FewestFor).
#ifndef CLIENT_LOAD_OBJECTIVE_H_
#define CLIENT_LOAD_OBJECTIVE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/load/report/report.h"

namespace tilewire::client {

struct Condition {
  std::string text;      // "p99<20ms"
  std::string quantity;  // "p99"
  std::string comparison;
  double bound = 0;  // of a latency: seconds
};

struct Verdict {
  std::string text;      // "p99<20ms"
  std::string measured;  // "23.1 ms"
  bool met = false;
};

class Objective {
 public:
  // kInvalidArgument  a condition is not of this form, or of an unknown quantity
  static absl::StatusOr<Objective> Parse(absl::string_view text);

  bool empty() const { return conditions_.empty(); }
  std::vector<Verdict> Judge(const LoadReport& report) const;
  bool IsMet(const LoadReport& report) const;
  // As many answers as all its percentiles need.
  int64_t FewestAnswers() const;

 private:
  std::vector<Condition> conditions_;
};

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_OBJECTIVE_H_
