// SPDX-License-Identifier: Apache-2.0
//
// Reports as text for a terminal of 80 columns.
#ifndef CLIENT_LOAD_REPORT_REPORT_TEXT_H_
#define CLIENT_LOAD_REPORT_REPORT_TEXT_H_

#include <string>
#include <vector>

#include "client/load/objective.h"
#include "client/load/record.h"
#include "client/load/report/report.h"

namespace tilewire::client {

// Latency, throughput, errors by code, what the server says, and why the figures may not be
// believed. Lines end with a line feed.
std::string ReportText(const LoadReport& report);

// A line per run.
std::string ComparisonText(const std::vector<LoadReport>& runs);

// The result of a rate search: "p99 <= 20 ms holds at 212/s: 17.1 ms in a last run of 10.0 s at
// 214/s, 2140 answers", the range of the limit, and what the search may have missed.
std::string SearchText(const LoadRecord& record);

// A line per condition.
std::string VerdictText(const std::vector<Verdict>& verdicts);

// For the line of progress: "98.8/s p50 1.23 ms p99 3.00 ms 0 errors".
std::string ProgressText(const LoadReport& so_far);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_REPORT_REPORT_TEXT_H_
