// SPDX-License-Identifier: Apache-2.0
//
// The highest rate that a server sustains: at which p99 keeps a bound, nothing fails, is refused or
// differs, and further conditions are met. Rates are doubled or halved until one holds and one
// fails, then the interval between the two is halved (geometrically) until it is narrow.
//
// A rate near the limit holds in one run and fails in the next, and any run may meet a pause of the
// machine: a rate fails if the majority of several runs fails, and holds if the majority holds, or
// a single run where rates are still doubled or halved.
#ifndef CLIENT_LOAD_RATE_SEARCH_H_
#define CLIENT_LOAD_RATE_SEARCH_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/load/load.h"
#include "client/load/objective.h"
#include "client/load/report.h"

namespace tilewire::client {

struct RateSearchOptions {
  absl::Duration p99;        // the bound
  Objective objective;       // further conditions
  double first_rate = 0;     // 0: half of what two callers of a closed loop reach in a second
  double precision = 0.03;   // the interval's width, relative to the rate that holds
  int repeats = 3;           // runs at a rate, odd
  double least_rate = 0.01;  // below which no server is asked
  double most_rate = 1e6;    // beyond which no server is asked
};

struct RateProbe {
  double rate = 0;
  bool held = false;
  LoadReport report;
};

struct RateSearchResult {
  double holds = 0;  // the highest rate at which the conditions were met; 0: at none
  double fails = 0;  // the lowest rate above it at which they were not; 0: none was found
  std::vector<RateProbe> probes;  // in the order in which they were run
};

// Measures at a rate; the load may end early once p99 cannot keep the bound.
using MeasureRate = std::function<absl::StatusOr<LoadReport>(double rate)>;

bool RateHolds(const RateSearchOptions& options, const LoadReport& report);

// Errors are those of `measure`. `stop`, not null, ends the search with what was found.
absl::StatusOr<RateSearchResult> SearchRate(const RateSearchOptions& options,
                                            const MeasureRate& measure,
                                            const std::atomic<bool>* stop);

// The search by open loops of `load`, whose own rate is not used; each sends a few requests at
// least. Before each, the server is left to answer what it still has: until single requests take no
// longer than the bound, 30 s at most.
//   kOutOfRange  half of the requests that are sent alone take longer than the bound
absl::StatusOr<RateSearchResult> FindRate(const ClientFactory& connect, const LoadOptions& load,
                                          RateSearchOptions options,
                                          const std::function<void(const RateProbe&)>& progress);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_RATE_SEARCH_H_
