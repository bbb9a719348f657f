// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/report.h"

#include <algorithm>
#include <cmath>

namespace tilewire::client {
namespace {

// From each answer's latency.
void SetPercentiles(LoadWindow* window) {
  Latencies latencies;
  for (const absl::Duration latency : window->latencies) latencies.Add(latency);
  window->p50 = latencies.Percentile(50);
  window->p99 = latencies.Percentile(99);
}

void MergeWindows(const LoadReport& other, LoadReport* report) {
  // Generators rarely start in the same moment: seconds that overlap most are one.
  const double shift = absl::ToDoubleSeconds(other.started - report->started);
  for (const LoadWindow& window : other.windows) {
    const auto index = static_cast<size_t>(std::max(0.0, std::round(window.start_s + shift)));
    while (report->windows.size() <= index)
      report->windows.push_back({.start_s = static_cast<double>(report->windows.size())});
    LoadWindow& sum = report->windows[index];
    sum.length_s = std::max(sum.length_s, window.length_s);
    sum.answered += window.answered;
    sum.errors += window.errors;
    sum.waiting += window.waiting;
    sum.p50 = std::max(sum.p50, window.p50);
    sum.p99 = std::max(sum.p99, window.p99);
    sum.largest = std::max(sum.largest, window.largest);
    sum.latencies.insert(sum.latencies.end(), window.latencies.begin(), window.latencies.end());
    const bool has_all = static_cast<int64_t>(sum.latencies.size()) == sum.answered;
    if (has_all) SetPercentiles(&sum);
    if (!has_all || sum.answered >= Latencies::FewestFor(99)) sum.latencies.clear();
  }
}

void MergeParts(const LoadReport& other, LoadReport* report) {
  for (const PartReport& part : other.parts) {
    auto sum = std::find_if(report->parts.begin(), report->parts.end(),
                            [&](const PartReport& known) { return known.name == part.name; });
    if (sum == report->parts.end()) {
      report->parts.push_back(part);
      continue;
    }
    sum->answered += part.answered;
    sum->mismatches += part.mismatches;
    sum->errors += part.errors;
    sum->latencies.Merge(part.latencies);
  }
}

}  // namespace

int64_t LoadReport::error_count() const {
  int64_t count = 0;
  for (const auto& [code, errors] : errors) count += errors;
  return count;
}

double LoadReport::rate() const {
  return elapsed > absl::ZeroDuration() ? answered / absl::ToDoubleSeconds(elapsed) : 0;
}

double LoadReport::cores() const {
  return elapsed > absl::ZeroDuration() ? absl::FDivDuration(cpu, elapsed) : 0;
}

void LoadReport::Merge(const LoadReport& other) {
  if (other.started < started) {
    LoadReport first = other;
    first.Merge(*this);
    *this = std::move(first);
    return;
  }
  if (name != other.name) name += " + " + other.name;
  const double requests = answered + other.answered;
  if (requests > 0) rows = (rows * answered + other.rows * other.answered) / requests;
  offered += other.offered;
  connections += other.connections;
  changes |= other.changes;
  if (ended_because.empty()) ended_because = other.ended_because;
  latencies.Merge(other.latencies);
  service.Merge(other.service);
  lateness.Merge(other.lateness);
  for (const ServerTime& time : kServerTimes)
    (server.*time.latencies).Merge(other.server.*time.latencies);
  elapsed = std::max(elapsed, other.started - started + other.elapsed);
  cpu += other.cpu;
  threads += other.threads;
  answered += other.answered;
  mismatches += other.mismatches;
  refusals += other.refusals;
  unsent += other.unsent;
  waiting += other.waiting;
  for (const auto& [code, count] : other.errors) errors[code] += count;
  if (first_error.empty()) first_error = other.first_error;
  MergeWindows(other, this);
  MergeParts(other, this);
}

}  // namespace tilewire::client
