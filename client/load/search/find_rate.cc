// SPDX-License-Identifier: Apache-2.0
#include "client/load/search/find_rate.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/latencies.h"

namespace tilewire::client {
namespace {

constexpr absl::Duration kLongestSettling = absl::Seconds(30);

bool IsStopped(const LoadOptions& load) { return load.stop != nullptr && load.stop->load(); }

LoadOptions CallersOf(const LoadOptions& load, int callers) {
  LoadOptions options = load;
  options.profile = RateProfile();
  options.concurrency = callers;
  options.warm_up = absl::ZeroDuration();
  return options;
}

absl::StatusOr<double> FirstRate(const ClientFactory& connect, const LoadOptions& load) {
  LoadOptions callers = CallersOf(load, 2);
  callers.requests = 0;
  callers.duration = absl::Seconds(1);
  auto report = RunLoad(connect, callers, [](const LoadReport&) {});
  if (!report.ok()) return report.status();
  if (report->answered == 0 && !IsStopped(load)) {
    return absl::UnavailableError(
        absl::StrCat("nothing was answered in a second: ", report->first_error));
  }
  return std::max(report->rate() / 2, 0.001);
}

// Whether requests keep the bound when no other is there.
absl::Status CheckAlone(const ClientFactory& connect, const LoadOptions& load,
                        absl::Duration bound) {
  LoadOptions single = CallersOf(load, 1);
  single.requests = 9;
  const auto report = RunLoad(connect, single, [](const LoadReport&) {});
  if (!report.ok()) return report.status();
  if (report->answered == 0 || report->latencies.Percentile(50) <= bound) return absl::OkStatus();
  return absl::OutOfRangeError(
      absl::StrCat("no rate can hold: single requests, one after the other, take ",
                   LatencyText(report->latencies.Percentile(50)),
                   " (p50), and p99 is to be within ", LatencyText(bound)));
}

// Waits until the server has answered what earlier loads left.
absl::Status Settle(const ClientFactory& connect, const LoadOptions& load, absl::Duration bound) {
  LoadOptions single = CallersOf(load, 1);
  single.requests = 3;
  const absl::Time end = absl::Now() + kLongestSettling;
  while (absl::Now() < end && !IsStopped(load)) {
    auto report = RunLoad(connect, single, [](const LoadReport&) {});
    if (!report.ok()) return report.status();
    if (report->ok() && report->latencies.Percentile(100) <= bound) break;
  }
  return absl::OkStatus();
}

LoadOptions OpenLoopOf(const LoadOptions& load, const RateRun& run, absl::Duration bound,
                       uint64_t number) {
  LoadOptions options = load;
  options.profile = RateProfile(run.rate);
  options.requests = run.requests;
  options.warm_up = run.warm_up;
  // With the same gaps in every run, all would have the same bursts.
  options.seed = load.seed + number;
  options.latency_bound = bound;
  options.most_over_bound = run.most_beyond();
  return options;
}

}  // namespace

absl::StatusOr<RateSearchResult> FindRate(const ClientFactory& connect, const LoadOptions& load,
                                          RateSearchOptions options,
                                          const RateSearchProgress& progress) {
  if (options.first_rate <= 0) {
    const absl::StatusOr<double> rate = FirstRate(connect, load);
    if (!rate.ok()) return rate.status();
    options.first_rate = *rate;
  }
  options.warm_up = load.warm_up;
  // The time is too short for the rate that was measured.
  if (absl::Status enough = CheckSearch(options); !enough.ok())
    return absl::OutOfRangeError(enough.message());
  if (absl::Status status = CheckAlone(connect, load, options.p99); !status.ok()) return status;
  progress.begins(options);
  const absl::Time begin = absl::Now();
  const absl::Duration time = SearchTime(options);
  uint64_t number = 0;
  const auto measure = [&](const RateRun& run) -> absl::StatusOr<LoadReport> {
    if (absl::Status status = Settle(connect, load, options.p99); !status.ok()) return status;
    const auto show = [&](const LoadReport& so_far) {
      progress.runs(run, absl::FDivDuration(absl::Now() - begin, time), so_far);
    };
    return RunLoad(connect, OpenLoopOf(load, run, options.p99, number++), show);
  };
  return SearchRate(options, {.measure = measure,
                              .now = [] { return absl::Now(); },
                              .progress = progress.ran,
                              .stop = load.stop});
}

}  // namespace tilewire::client
