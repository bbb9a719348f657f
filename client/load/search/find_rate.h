// SPDX-License-Identifier: Apache-2.0
//
// The search for the highest rate (rate_search.h) by open loops.
#ifndef CLIENT_LOAD_SEARCH_FIND_RATE_H_
#define CLIENT_LOAD_SEARCH_FIND_RATE_H_

#include <functional>

#include "absl/status/statusor.h"
#include "client/load/load.h"
#include "client/load/search/rate_search.h"

namespace tilewire::client {

// Called while a search runs, each from the thread that runs it.
struct RateSearchProgress {
  // Once, when the first rate is known: with what the search will do.
  std::function<void(const RateSearchOptions&)> begins;
  // About ten times a second, with the share of its time that has passed.
  std::function<void(const RateRun&, double passed, const LoadReport& so_far)> runs;
  std::function<void(const RateProbe&)> ran;
};

// By open loops of `load`, whose own rate, duration and number of requests are not used, nor is its
// seed: each run has another one, which follows from it. If `options` have no first rate, it is
// half of what two callers of a closed loop reach in a second. Before each run the server is left
// to answer what it still has: until single requests take no longer than the bound, 30 s at most.
//   kOutOfRange  half of the requests that are sent alone take longer than the bound
absl::StatusOr<RateSearchResult> FindRate(const ClientFactory& connect, const LoadOptions& load,
                                          RateSearchOptions options,
                                          const RateSearchProgress& progress);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_SEARCH_FIND_RATE_H_
