// SPDX-License-Identifier: Apache-2.0
//
// Percentiles of the latency over time. Counts of a second are exact however few they are; a
// percentile needs some answers, so that seconds with few of them are joined for it, and each value
// says which time it is the value of.
#ifndef CLIENT_LOAD_LATENCY_SPANS_H_
#define CLIENT_LOAD_LATENCY_SPANS_H_

#include <vector>

#include "absl/time/time.h"
#include "client/load/report/report.h"

namespace tilewire::client {

struct LatencySpan {
  double start_s = 0, end_s = 0;
  int64_t answered = 0;
  absl::Duration latency;  // the percentile
};

// Each second with enough answers is a span. Others are joined with those after them until they
// have enough, never with one that has enough by itself: too few answers between two such seconds
// make no span. Seconds without answers at a span's ends are not part of it.
std::vector<LatencySpan> P50Spans(const LoadReport& report);  // of 10 answers at least
std::vector<LatencySpan> P99Spans(const LoadReport& report);  // of 100 answers at least

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_LATENCY_SPANS_H_
