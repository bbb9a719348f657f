// SPDX-License-Identifier: Apache-2.0
#include "client/load/search/rate_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

constexpr int64_t kFewestRequests = 300;  // of a run: three are beyond p99
constexpr int64_t kLastRun = 4;           // as many runs
constexpr double kWarmUp = 0.1;           // of a run
constexpr int64_t kRunsOfASearch = 40, kFewestRuns = 12;
constexpr absl::Duration kShortestSearch = absl::Minutes(4);
constexpr size_t kMostProbes = 1000;  // even if they take no time
constexpr double kBoundsOfARun = 20;  // a run is as long as so many times the bound

// The limit is below its range, or above, with these probabilities. What a server will be planned
// with is the lower end.
constexpr double kBelowRange = 0.01, kAboveRange = 1 - kRangeProbability - kBelowRange;

// Where runs are made: about the middle of the range, on both sides.
constexpr double kNextBelow = 0.4, kNextAbove = 0.6;

constexpr double kBelowAFailure = 0.95;  // as a factor

// With three digits, as a command line takes it; of a last run downwards.
double RoundRate(double rate, bool down) {
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 2);
  const double units = rate / unit;
  return (down ? std::floor(units + 1e-9) : std::round(units)) * unit;
}

// A rate at which the server keeps up, as a run shows it that held. A queue that grows all the time
// delays the last requests of a run by less than the bound, if the run is short or the rate little
// too high: as much of the run's length may be missing.
double SustainedRate(const RateProbe& probe) {
  return probe.run.rate /
         (1 + absl::FDivDuration(probe.report.latencies.Percentile(99), probe.run.length()));
}

class Search {
 public:
  Search(const RateSearchOptions& options, const RateSearchWorld& world)
      : options_(options), world_(world), end_(world.now() + SearchTime(options)) {}

  absl::StatusOr<RateSearchResult> Run() {
    if (absl::Status status = FindBothSides(); !status.ok()) return status;
    if (result_.probes.empty() || most_held_ == 0) return std::move(result_);
    absl::Status status = least_failed_ == 0 ? Confirm(most_held_) : Narrow();
    if (!status.ok()) return status;
    return std::move(result_);
  }

 private:
  bool Stopped() const {
    return (world_.stop != nullptr && world_.stop->load()) || result_.probes.size() >= kMostProbes;
  }
  bool HasTimeFor(absl::Duration length) const { return world_.now() + length <= end_; }

  bool IsNarrow(double low) const { return result_.fails <= low * (1 + options_.precision); }

  absl::Status FindBothSides() {
    double rate = RoundRate(options_.first_rate, /*down=*/false);
    while ((most_held_ == 0 || least_failed_ == 0) && !Stopped()) {
      if (rate < options_.least_rate || rate > options_.most_rate) break;
      const RateRun run = ShortRunAt(options_, rate);
      if (!result_.probes.empty() && !HasTimeFor(run.length() + LastRunAt(options_, rate).length()))
        break;
      if (absl::Status status = Probe(run); !status.ok()) return status;
      rate = most_held_ > 0 ? most_held_ * 2 : least_failed_ / 2;
    }
    return absl::OkStatus();
  }

  absl::Status Narrow() {
    for (bool above = false; !Stopped() && result_.holds == 0; above = !above) {
      const std::vector<double> quantiles =
          belief_.Quantiles({kBelowRange, kNextBelow, kNextAbove});
      const double low = std::min(quantiles[0], most_confirmable_);
      const RateRun last = LastRunAt(options_, RoundRate(low, /*down=*/true));
      const RateRun next = ShortRunAt(options_, RoundRate(quantiles[above ? 2 : 1], false));
      // The first of the last runs may fail, and the second.
      const bool is_time_up = !HasTimeFor(next.length() + 3 * last.length());
      const bool is_due = is_time_up || IsNarrow(quantiles[0]);
      if (is_due && !HasTimeFor(last.length())) break;
      absl::Status status = is_due ? Confirm(last.rate) : Probe(next);
      if (!status.ok()) return status;
      // A range that is narrow by chance is wide again after the long run. That it may reach
      // further down, to what long runs show, no more runs about the limit can change.
      const bool is_wide = !IsNarrow(result_.probes.back().low);
      if (result_.holds > 0 && !is_time_up && is_wide) result_.holds = 0;
    }
    return absl::OkStatus();
  }

  absl::Status Confirm(double rate) {
    if (Stopped()) return absl::OkStatus();
    const size_t before = result_.probes.size();
    if (absl::Status status = Probe(LastRunAt(options_, rate)); !status.ok()) return status;
    if (result_.probes.size() == before) return absl::OkStatus();
    if (result_.probes.back().held) {
      result_.holds = result_.low = std::min(result_.low, SustainedRate(result_.probes.back()));
    } else {
      most_confirmable_ = rate * kBelowAFailure;
    }
    return absl::OkStatus();
  }

  absl::Status Probe(const RateRun& run) {
    absl::StatusOr<LoadReport> report = world_.measure(run);
    if (!report.ok()) return report.status();
    // A load that was broken off says nothing about the rate.
    if (Stopped()) return absl::OkStatus();
    const RateEvidence evidence = EvidenceOf(options_, run, *report);
    belief_.Add(evidence);
    if (evidence.holds()) {
      most_held_ = std::max(most_held_, run.rate);
    } else {
      least_failed_ = least_failed_ == 0 ? run.rate : std::min(least_failed_, run.rate);
    }
    RateProbe probe{.run = run, .held = evidence.holds(), .report = *std::move(report)};
    if (most_held_ > 0 && least_failed_ > 0) {
      const std::vector<double> range = belief_.Quantiles({kBelowRange, 1 - kAboveRange});
      probe.low = range[0];
      probe.high = range[1];
    }
    result_.low = probe.low > 0 ? probe.low : most_held_;
    result_.fails = probe.high > 0 ? probe.high : least_failed_;
    result_.probes.push_back(std::move(probe));
    world_.progress(result_.probes.back());
    return absl::OkStatus();
  }

  const RateSearchOptions& options_;
  const RateSearchWorld& world_;
  const absl::Time end_;
  RateBelief belief_;
  double most_held_ = 0, least_failed_ = 0;  // 0: none
  // Whatever short runs say, the next long one is below those that failed.
  double most_confirmable_ = std::numeric_limits<double>::infinity();
  RateSearchResult result_;
};

}  // namespace

RateRun ShortRunAt(const RateSearchOptions& options, double rate) {
  const absl::Duration length = std::max(options.run, kBoundsOfARun * options.p99);
  const double requests = std::ceil(rate * absl::ToDoubleSeconds(length));
  RateRun run{.rate = rate, .requests = options.requests};
  if (run.requests == 0) {
    run.requests = std::max(
        {kFewestRequests, static_cast<int64_t>(requests), options.objective.FewestAnswers()});
  }
  run.warm_up = std::max(options.warm_up, kWarmUp * run.length());
  return run;
}

RateRun LastRunAt(const RateSearchOptions& options, double rate) {
  RateRun run = ShortRunAt(options, rate);
  run.requests *= kLastRun;
  run.is_last = true;
  return run;
}

absl::Duration SearchTime(const RateSearchOptions& options) {
  if (options.time > absl::ZeroDuration()) return options.time;
  return std::max(kShortestSearch,
                  kRunsOfASearch * ShortRunAt(options, options.first_rate).length());
}

RateEvidence EvidenceOf(const RateSearchOptions& options, const RateRun& run,
                        const LoadReport& report) {
  RateEvidence evidence{.rate = run.rate, .answers = run.requests};
  evidence.beyond = report.latencies.CountAbove(options.p99);
  // How many more there are of them says nothing about the limit, and depends on the run's length.
  if (report.ended_early() || evidence.beyond > run.most_beyond()) {
    evidence.at_least = true;
    evidence.beyond = run.most_beyond() + 1;
  }
  if (!report.ok() || !options.objective.IsMet(report)) {
    evidence.at_least = true;
    evidence.beyond = std::max(evidence.beyond, run.requests / 100 + 1);
  }
  return evidence;
}

absl::Status CheckSearch(const RateSearchOptions& options) {
  const int64_t fewest = options.objective.FewestAnswers();
  if (options.requests > 0 && options.requests < fewest) {
    return absl::InvalidArgumentError(absl::StrCat("--requests=", options.requests,
                                                   ": the percentiles of --require need ", fewest,
                                                   " answers in each run"));
  }
  const bool is_known = options.first_rate > 0;
  const RateRun run = ShortRunAt(options, is_known ? options.first_rate : options.most_rate);
  const absl::Duration least = kFewestRuns * run.length();
  if (options.time <= absl::ZeroDuration() || options.time >= least) return absl::OkStatus();
  const std::string length = is_known ? absl::StrCat("at ", RateText(run.rate), "/s a run of ",
                                                     run.requests, " requests takes ")
                                      : "at any rate a run takes at least ";
  return absl::InvalidArgumentError(
      absl::StrCat("--search_time=", absl::ToDoubleSeconds(options.time), ": ", length,
                   LatencyText(run.length()), ", and a search ", kFewestRuns, " of them: at least ",
                   LatencyText(least)));
}

absl::StatusOr<RateSearchResult> SearchRate(const RateSearchOptions& options,
                                            const RateSearchWorld& world) {
  if (absl::Status enough = CheckSearch(options); !enough.ok()) return enough;
  return Search(options, world).Run();
}

}  // namespace tilewire::client
