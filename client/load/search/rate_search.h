// SPDX-License-Identifier: Apache-2.0
//
// The highest rate that a server sustains: at which p99 keeps a bound in the long run, nothing
// fails, is refused or differs, and further conditions are met.
//
// Rates are doubled or halved until one holds and one fails. Then runs at rates about the probable
// limit narrow the range in which it lies (rate_belief.h), until that is as narrow as wanted or the
// time is up but for the last run. That one is long, at the range's lower end; if it fails, the
// search goes on below it, and if the range is wide again after it, about the limit.
//
// A pause, or anything else that is as rare as once in a search, may not show in it.
#ifndef CLIENT_LOAD_SEARCH_RATE_SEARCH_H_
#define CLIENT_LOAD_SEARCH_RATE_SEARCH_H_

#include <atomic>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/load/objective.h"
#include "client/load/report/report.h"
#include "client/load/search/rate_belief.h"

namespace tilewire::client {

struct RateSearchOptions {
  absl::Duration p99;       // the bound
  Objective objective;      // further conditions
  double first_rate = 0;    // above 0
  double precision = 0.05;  // the range's width, relative to its lower end
  // Each run is as long, 20 times `p99` and 300 requests at least, or has as many `requests`, and
  // as many as `objective` needs; before it counts, a tenth of it passes, `warm_up` at least: at
  // its start no request waits.
  absl::Duration run = absl::Seconds(2), warm_up;
  int64_t requests = 0;
  absl::Duration time;        // of the search at most; zero: that of 40 runs, 4 minutes at least
  double least_rate = 0.001;  // below which no server is asked
  double most_rate = 1e6;     // beyond which no server is asked
};

struct RateRun {
  double rate = 0;
  int64_t requests = 0;  // that count
  absl::Duration warm_up;
  bool is_last = false;  // the long one, at what may be the result

  absl::Duration length() const {
    return warm_up + absl::Seconds(static_cast<double>(requests) / rate);
  }
  // So many requests beyond the bound tell that the rate is far from holding.
  int64_t most_beyond() const { return requests / 50 + 2; }
};

struct RateProbe {
  RateRun run;
  bool held = false;
  LoadReport report;
  double low = 0, high = 0;  // the limit's range, as far as known after it; 0: not yet
};

struct RateSearchResult {
  // The range's lower end, if a long run held there or above it; 0: none did.
  double holds = 0;
  double low = 0, fails = 0;      // the limit's range; 0: no rate held, no rate failed
  std::vector<RateProbe> probes;  // in the order in which they were run
};

// The limit is in its range with this probability, as far as the runs are like all others.
inline constexpr double kRangeProbability = 0.94;

// Measures at a rate; the load may end early, by LoadOptions::most_over_bound, once more answers
// are beyond the bound than RateRun::most_beyond().
using MeasureRate = std::function<absl::StatusOr<LoadReport>(const RateRun& run)>;

// The runs at a rate that `options` ask for, and how long the search takes at most.
RateRun ShortRunAt(const RateSearchOptions& options, double rate);
RateRun LastRunAt(const RateSearchOptions& options, double rate);
absl::Duration SearchTime(const RateSearchOptions& options);

// Whether a range can be found in the time of `options`, from their first rate on; where that is 0,
// from any rate that may be measured on; and whether its runs have the answers that the objective
// needs.
//   kInvalidArgument  says how much it takes at least
absl::Status CheckSearch(const RateSearchOptions& options);

// The result of a run; it holds if p99 keeps the bound and all else is as required.
RateEvidence EvidenceOf(const RateSearchOptions& options, const RateRun& run,
                        const LoadReport& report);

// Outside of the library's clock, and of its loads.
struct RateSearchWorld {
  MeasureRate measure;
  std::function<absl::Time()> now;
  std::function<void(const RateProbe&)> progress;
  const std::atomic<bool>* stop = nullptr;  // once true, ends the search with what was found
};

// Errors are those of `measure`.
//   kInvalidArgument  so little time that no range can be found in it
absl::StatusOr<RateSearchResult> SearchRate(const RateSearchOptions& options,
                                            const RateSearchWorld& world);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_SEARCH_RATE_SEARCH_H_
