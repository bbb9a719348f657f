// SPDX-License-Identifier: Apache-2.0
//
// The measurements of one invocation of the load tester, as a file: JSON, from which everything can
// be read again, and CSV.
#ifndef CLIENT_LOAD_RECORD_H_
#define CLIENT_LOAD_RECORD_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "client/load/load_origin.h"
#include "client/load/report/report.h"
#include "client/load/report/report_difference.h"

namespace tilewire::client {

struct LoadRecord {
  std::string title;                // what was called, in words: "digits at 127.0.0.1:8001"
  std::vector<LoadOrigin> origins;  // of the loads that are in it
  std::string bound;                // of a rate search: "p99 <= 20 ms"; else empty
  // Found by a rate search: see RateSearchResult.
  double holds = 0, low = 0, fails = 0;
  std::vector<LoadReport> runs;             // of a search: its probes
  std::vector<LoadComparison> comparisons;  // of files beside each other; no part of JSON or CSV
};

// Histograms are in it as pairs of bucket and count, so that reading loses nothing.
std::string ToJson(const LoadRecord& record);
// kInvalidArgument  not such a file, or of another version
absl::StatusOr<LoadRecord> FromJson(absl::string_view text);

// A row per run, per part of a mix and per second; the first line names the columns. Times are in
// milliseconds.
std::string ToCsv(const LoadRecord& record);

// One record of generators that ran the same loads at the same time: their runs are added one by
// one.
//   kInvalidArgument  none, or other numbers of runs, or a load that is in two of them
absl::StatusOr<LoadRecord> MergeRecords(const std::vector<LoadRecord>& records);

}  // namespace tilewire::client

#endif  // CLIENT_LOAD_RECORD_H_
