// SPDX-License-Identifier: Apache-2.0
//
// Reports of loads that were not run.
#ifndef TESTS_CLIENT_LOAD_REPORTS_H_
#define TESTS_CLIENT_LOAD_REPORTS_H_

#include "absl/time/time.h"
#include "client/load/report/report.h"

namespace tilewire::client {

// Five seconds of 100 answers each, which took 1 to 10 ms.
inline LoadReport FiveSeconds(absl::Time started = absl::FromUnixSeconds(1000)) {
  LoadReport report;
  report.name = "open loop of 100/s (poisson)";
  report.offered = 100;
  report.connections = 4;
  report.started = started;
  report.elapsed = absl::Seconds(5);
  report.cpu = absl::Seconds(1);
  report.threads = 2;
  for (int i = 0; i < 500; ++i) {
    report.latencies.Add(absl::Milliseconds(1 + i % 10));
    report.service.Add(absl::Milliseconds(1));
    report.lateness.Add(absl::Microseconds(50));
  }
  report.answered = 500;
  for (int second = 0; second < 5; ++second) {
    report.windows.push_back({.start_s = double(second),
                              .answered = 100,
                              .waiting = 2,
                              .p50 = absl::Milliseconds(5),
                              .p99 = absl::Milliseconds(10)});
  }
  report.parts.push_back({.name = "digits", .answered = 500, .latencies = report.latencies});
  return report;
}

}  // namespace tilewire::client

#endif  // TESTS_CLIENT_LOAD_REPORTS_H_
