// SPDX-License-Identifier: Apache-2.0
//
// Loads of a noisy server in simulated time, for searches that would take minutes each.
#ifndef TESTS_CLIENT_SIMULATED_LOAD_H_
#define TESTS_CLIENT_SIMULATED_LOAD_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>

#include "absl/time/time.h"
#include "client/load/report/report.h"
#include "client/load/search/rate_search.h"
#include "tests/client/noisy_service.h"

namespace tilewire::client {

class SimulatedLoad {
 public:
  // `constant`: gaps between requests are equal, else exponential.
  SimulatedLoad(double service_s, const Noise& noise, bool constant, absl::Duration bound,
                uint64_t seed)
      : service_(service_s, noise, seed),
        is_constant_(constant),
        bound_s_(absl::ToDoubleSeconds(bound)),
        random_(seed + 1'000'000) {}

  // An open loop that ends early once more than `most_beyond` requests are beyond the bound.
  LoadReport Run(const RateRun& run, int64_t most_beyond) {
    LoadReport report;
    report.offered = run.rate;
    const double counted_from_s = now_s_ + absl::ToDoubleSeconds(run.warm_up);
    const double began_s = now_s_;
    service_.Drop(now_s_);
    int64_t beyond = 0;
    while (report.answered < run.requests && beyond <= most_beyond) {
      now_s_ += (is_constant_ ? 1 : exponential_(random_)) / run.rate;
      const double latency_s = service_.Finish(now_s_) - now_s_;
      if (now_s_ < counted_from_s) continue;
      ++report.answered;
      report.latencies.Add(absl::Seconds(latency_s));
      if (latency_s > bound_s_) ++beyond;
    }
    if (beyond > most_beyond) report.ended_because = "too many were beyond the bound";
    report.elapsed = absl::Seconds(now_s_ - began_s);
    return report;
  }

  RateSearchWorld World() {
    return {.measure = [this](const RateRun& run) -> absl::StatusOr<LoadReport> {
              return Run(run, run.most_beyond());
            },
            .now = [this] { return absl::UnixEpoch() + absl::Seconds(now_s_); },
            .progress = [](const RateProbe&) {}};
  }

 private:
  NoisyService service_;
  const bool is_constant_;
  const double bound_s_;
  std::mt19937_64 random_;
  std::exponential_distribution<double> exponential_;
  double now_s_ = 0;
};

// The rate at which one answer of a hundred is beyond the bound: of so many that it is known to
// about 1 %.
inline double LimitOf(double service_s, const Noise& noise, bool constant, absl::Duration bound,
                      int64_t answers) {
  double low = 0.1 / service_s, high = 2 / service_s;
  for (int step = 0; step < 12; ++step) {
    const double middle = std::sqrt(low * high);
    SimulatedLoad load(service_s, noise, constant, bound, step);
    const LoadReport report =
        load.Run({.rate = middle, .requests = answers}, std::numeric_limits<int64_t>::max());
    const double share =
        static_cast<double>(report.latencies.CountAbove(bound)) / static_cast<double>(answers);
    (share <= 0.01 ? low : high) = middle;
  }
  return std::sqrt(low * high);
}

}  // namespace tilewire::client

#endif  // TESTS_CLIENT_SIMULATED_LOAD_H_
