// SPDX-License-Identifier: Apache-2.0
#include "client/load/rate_search.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/latencies.h"

namespace tilewire::client {
namespace {

constexpr double kFewestRequests = 3;  // of a run
constexpr absl::Duration kLongestSettling = absl::Seconds(30);

// One search: the interval so far and the runs that led to it.
class Search {
 public:
  Search(const RateSearchOptions& options, const MeasureRate& measure,
         const std::atomic<bool>* stop)
      : options_(options), measure_(measure), stop_(stop) {}

  absl::StatusOr<RateSearchResult> Run() {
    double rate = options_.first_rate;
    for (absl::Status status; !Bracketed() && !Stopped(); rate = NextOutside()) {
      if (rate < options_.least_rate || rate > options_.most_rate) break;
      if (status = Judge(rate, /*enough=*/1); !status.ok()) return status;
    }
    while (Bracketed() && !Stopped() && result_.fails > result_.holds * (1 + options_.precision)) {
      const double middle = std::sqrt(result_.holds * result_.fails);
      if (absl::Status status = Judge(middle, Majority()); !status.ok()) return status;
    }
    return std::move(result_);
  }

 private:
  bool Stopped() const { return stop_ != nullptr && stop_->load(); }
  bool Bracketed() const { return result_.holds > 0 && result_.fails > 0; }
  double NextOutside() const { return result_.holds > 0 ? result_.holds * 2 : result_.fails / 2; }

  int Majority() const { return options_.repeats / 2 + 1; }

  // Runs at the rate until `enough` runs held or most failed, and moves an end of the interval. One
  // failure never decides: a pause of the machine may have caused it.
  absl::Status Judge(double rate, int enough) {
    int held = 0, failed = 0;
    while (held < enough && failed < Majority()) {
      absl::StatusOr<LoadReport> report = measure_(rate);
      if (!report.ok()) return report.status();
      // A load that was broken off says nothing about the rate.
      if (Stopped()) return absl::OkStatus();
      const bool holds = RateHolds(options_, *report);
      ++(holds ? held : failed);
      result_.probes.push_back({rate, holds, *std::move(report)});
    }
    (held >= enough ? result_.holds : result_.fails) = rate;
    return absl::OkStatus();
  }

  const RateSearchOptions& options_;
  const MeasureRate& measure_;
  const std::atomic<bool>* const stop_;
  RateSearchResult result_;
};

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
  if (report->answered == 0 && (load.stop == nullptr || !load.stop->load())) {
    return absl::UnavailableError(
        absl::StrCat("nothing was answered in a second: ", report->first_error));
  }
  return std::max(1.0, report->rate() / 2);
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
  while (absl::Now() < end && (load.stop == nullptr || !load.stop->load())) {
    auto report = RunLoad(connect, single, [](const LoadReport&) {});
    if (!report.ok()) return report.status();
    if (report->ok() && report->latencies.Percentile(100) <= bound) break;
  }
  return absl::OkStatus();
}

LoadOptions OpenLoopOf(const LoadOptions& load, double rate, absl::Duration bound) {
  LoadOptions options = load;
  options.profile = RateProfile(rate);
  options.latency_bound = bound;
  const double planned = load.requests > 0 ? static_cast<double>(load.requests)
                                           : rate * absl::ToDoubleSeconds(load.duration);
  options.most_over_bound = static_cast<int64_t>(planned / 100) + 1;
  return options;
}

}  // namespace

bool RateHolds(const RateSearchOptions& options, const LoadReport& report) {
  return report.ok() && !report.ended_early() && report.latencies.Percentile(99) <= options.p99 &&
         options.objective.IsMet(report);
}

absl::StatusOr<RateSearchResult> SearchRate(const RateSearchOptions& options,
                                            const MeasureRate& measure,
                                            const std::atomic<bool>* stop) {
  return Search(options, measure, stop).Run();
}

absl::StatusOr<RateSearchResult> FindRate(const ClientFactory& connect, const LoadOptions& load,
                                          RateSearchOptions options,
                                          const std::function<void(const RateProbe&)>& progress) {
  if (options.first_rate <= 0) {
    const absl::StatusOr<double> rate = FirstRate(connect, load);
    if (!rate.ok()) return rate.status();
    options.first_rate = *rate;
  }
  if (absl::Status status = CheckAlone(connect, load, options.p99); !status.ok()) return status;
  if (load.requests == 0)
    options.least_rate = kFewestRequests / absl::ToDoubleSeconds(load.duration);
  const auto measure = [&](double rate) -> absl::StatusOr<LoadReport> {
    if (absl::Status status = Settle(connect, load, options.p99); !status.ok()) return status;
    auto report = RunLoad(connect, OpenLoopOf(load, rate, options.p99), [](const LoadReport&) {});
    if (report.ok()) progress({rate, RateHolds(options, *report), *report});
    return report;
  };
  return SearchRate(options, measure, load.stop);
}

}  // namespace tilewire::client
