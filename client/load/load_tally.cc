// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_tally.h"

#include <algorithm>

#include "client/amount_text.h"

namespace tilewire::client {
namespace {

// ", think time 20.0 ms (exponential)"
std::string ThinkText(const LoadOptions& options) {
  if (options.think == absl::ZeroDuration()) return "";
  const bool is_constant = options.think_kind == ThinkKind::kConstant;
  return absl::StrCat(", think time ", LatencyText(options.think),
                      is_constant ? " (constant)" : " (exponential)");
}

std::string NameOf(const LoadOptions& options) {
  if (!options.is_open())
    return absl::StrCat(CountText(options.concurrency, "caller"), ThinkText(options));
  const char* const kind = options.arrivals == ArrivalKind::kPoisson ? "poisson" : "constant";
  if (options.profile.is_constant()) {
    return absl::StrCat("open loop of ", RateText(options.profile.RateAt(absl::ZeroDuration())),
                        "/s (", kind, ")");
  }
  std::string name = "open loop of ";
  for (const RateStage& stage : options.profile.stages()) {
    const std::string to = stage.to == stage.from ? "" : absl::StrCat("-", RateText(stage.to));
    absl::StrAppend(&name, RateText(stage.from), to, "/s ", absl::FormatDuration(stage.length),
                    ", ");
  }
  return absl::StrCat(name, kind);
}

double MeanRows(const std::vector<LoadPart>& parts) {
  double rows = 0, shares = 0;
  for (const LoadPart& part : parts) {
    rows += part.share * part.rows;
    shares += part.share;
  }
  return rows / shares;
}

}  // namespace

LoadTally::LoadTally(const LoadOptions& options, absl::Time counted_from)
    : counted_from_(counted_from),
      latency_bound_(options.latency_bound),
      planned_(options.requests > 0 ? absl::ZeroDuration() : options.duration) {
  report_.name = NameOf(options);
  report_.changes = !options.profile.is_constant();
  if (options.is_open() && !report_.changes)
    report_.offered = options.profile.RateAt(absl::ZeroDuration());
  report_.connections = options.is_open() ? options.connections : options.concurrency;
  if (!options.is_open()) report_.think = options.think;
  report_.rows = MeanRows(options.parts);
  report_.started = counted_from;
  report_.threads = options.threads + 1;
  for (const LoadPart& part : options.parts) report_.parts.push_back({.name = part.name});
}

void LoadTally::Count(const Outcome& outcome, size_t waiting) {
  report_.elapsed = std::max(report_.elapsed, outcome.answered - counted_from_);
  report_.lateness.Add(outcome.sent - outcome.due);
  CloseWindows(outcome.answered - counted_from_, waiting);
  if (outcome.answered - outcome.due > latency_bound_) ++over_bound_;
  outcome.status.ok() ? CountAnswer(outcome) : CountError(outcome);
}

void LoadTally::CountAnswer(const Outcome& outcome) {
  const absl::Duration latency = outcome.answered - outcome.due;
  PartReport& part = report_.parts[outcome.part];
  ++report_.answered;
  ++part.answered;
  ++window_.answered;
  report_.latencies.Add(latency);
  report_.service.Add(outcome.answered - outcome.sent);
  part.latencies.Add(latency);
  window_latencies_.Add(latency);
  // One too many tells that there are enough.
  if (window_.latencies.size() < static_cast<size_t>(Latencies::FewestFor(99)))
    window_.latencies.push_back(latency);
  CountSplit(outcome);
  if (outcome.difference.empty()) return;
  ++report_.mismatches;
  ++part.mismatches;
  if (report_.first_error.empty()) report_.first_error = outcome.difference;
}

void LoadTally::CountSplit(const Outcome& outcome) {
  if (!outcome.split) return;
  report_.server.compute.Add(outcome.split->compute);
  if (outcome.split->queue) report_.server.queue.Add(*outcome.split->queue);
  if (outcome.split->reorder) report_.server.reorder.Add(*outcome.split->reorder);
  if (outcome.split->encode) report_.server.encode.Add(*outcome.split->encode);
  report_.server.network.Add(
      std::max(outcome.answered - outcome.sent - outcome.split->total(), absl::ZeroDuration()));
}

void LoadTally::CountError(const Outcome& outcome) {
  ++report_.errors[outcome.status.code()];
  ++report_.parts[outcome.part].errors;
  ++window_.errors;
  if (outcome.was_pushed_back) ++report_.refusals;
  if (report_.first_error.empty()) report_.first_error = outcome.status.ToString();
}

void LoadTally::CloseWindows(absl::Duration time, size_t waiting) {
  while (absl::ToDoubleSeconds(time) >= window_.start_s + 1) CloseWindow(1, waiting);
}

void LoadTally::CloseWindow(double length_s, size_t waiting) {
  window_.length_s = length_s;
  window_.waiting = waiting;
  window_.p50 = window_latencies_.Percentile(50);
  window_.p99 = window_latencies_.Percentile(99);
  window_.largest = window_latencies_.Percentile(100);
  if (window_latencies_.Knows(99)) window_.latencies.clear();
  report_.windows.push_back(window_);
  window_ = {.start_s = window_.start_s + 1};
  window_latencies_ = Latencies();
}

void LoadTally::EndEarly(absl::string_view because, absl::Time now, size_t waiting) {
  if (report_.ended_early()) return;
  report_.ended_because = std::string(because);
  report_.waiting = static_cast<int64_t>(waiting);
  const absl::Duration time = now - counted_from_;
  if (time <= report_.elapsed) return;
  report_.elapsed = time;
  CloseWindows(time, waiting);
}

LoadReport LoadTally::SoFar(absl::Time now, size_t waiting) const {
  LoadReport so_far;
  so_far.name = report_.name;
  so_far.latencies = report_.latencies;
  so_far.answered = report_.answered;
  so_far.mismatches = report_.mismatches;
  so_far.unsent = report_.unsent;
  so_far.errors = report_.errors;
  so_far.waiting = waiting;
  so_far.elapsed = std::max(now - counted_from_, absl::ZeroDuration());
  return so_far;
}

LoadReport LoadTally::Finish() {
  if (!report_.ended_early() && report_.elapsed < planned_) {
    report_.elapsed = planned_;
    CloseWindows(planned_, 0);
  }
  const double rest = absl::ToDoubleSeconds(report_.elapsed) - window_.start_s;
  if (window_.answered + window_.errors > 0) CloseWindow(std::clamp(rest, 1e-3, 1.0), 0);
  return report_;
}

}  // namespace tilewire::client
