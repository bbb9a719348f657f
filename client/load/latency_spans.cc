// SPDX-License-Identifier: Apache-2.0
#include "client/load/latency_spans.h"

#include "client/latencies.h"

namespace tilewire::client {
namespace {

constexpr int64_t kFewestForSpanP50 = 10;

class SpanJoiner {
 public:
  SpanJoiner(double percent, absl::Duration LoadWindow::*of_second, int64_t fewest)
      : percent_(percent), of_second_(of_second), fewest_(fewest) {}

  void Add(const LoadWindow& window) {
    if (window.answered == 0) return;
    if (window.answered >= fewest_) {
      EndJoined();
      spans_.push_back({window.start_s, window.end_s(), window.answered, window.*of_second_});
      return;
    }
    // Merged generators may know too little of a second.
    if (static_cast<int64_t>(window.latencies.size()) != window.answered) return EndJoined();
    if (joined_.answered == 0) joined_.start_s = window.start_s;
    joined_.end_s = window.end_s();
    joined_.answered += window.answered;
    for (const absl::Duration latency : window.latencies) latencies_.Add(latency);
    if (joined_.answered >= fewest_) EndJoined();
  }

  std::vector<LatencySpan> Finish() {
    EndJoined();
    return std::move(spans_);
  }

 private:
  // Too few at the end of a stretch of seconds with few answers belong to the span before them.
  void EndJoined() {
    const bool is_enough = joined_.answered >= fewest_;
    if (!is_enough && joined_.answered > 0 && last_is_joined_ && !spans_.empty()) {
      LatencySpan& last = spans_.back();
      last_latencies_.Merge(latencies_);
      last.end_s = joined_.end_s;
      last.answered += joined_.answered;
      last.latency = last_latencies_.Percentile(percent_);
    }
    if (is_enough) {
      joined_.latency = latencies_.Percentile(percent_);
      spans_.push_back(joined_);
      last_latencies_ = latencies_;
    }
    last_is_joined_ = is_enough;
    joined_ = {};
    latencies_ = Latencies();
  }

  const double percent_;
  absl::Duration LoadWindow::*const of_second_;
  const int64_t fewest_;
  std::vector<LatencySpan> spans_;
  LatencySpan joined_;  // so far
  Latencies latencies_, last_latencies_;
  bool last_is_joined_ = false;
};

std::vector<LatencySpan> Spans(const LoadReport& report, SpanJoiner joiner) {
  for (const LoadWindow& window : report.windows) joiner.Add(window);
  return joiner.Finish();
}

}  // namespace

std::vector<LatencySpan> P50Spans(const LoadReport& report) {
  return Spans(report, {50, &LoadWindow::p50, kFewestForSpanP50});
}

std::vector<LatencySpan> P99Spans(const LoadReport& report) {
  return Spans(report, {99, &LoadWindow::p99, Latencies::FewestFor(99)});
}

}  // namespace tilewire::client
