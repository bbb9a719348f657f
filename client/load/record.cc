// SPDX-License-Identifier: Apache-2.0
#include "client/load/record.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace tilewire::client {
namespace {

constexpr char kCsvHeader[] =
    "scope,run,name,start_s,length_s,answered,per_s,errors,refusals,mismatches,unsent,waiting,"
    "mean_ms,p50_ms,p90_ms,p95_ms,p99_ms,p999_ms,max_ms,"
    "service_p50_ms,service_p99_ms,lateness_p99_ms,cpu_cores";

std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(text, {{"\"", "\"\""}}), "\"");
}

std::string Milliseconds(absl::Duration duration) {
  return absl::StrFormat("%.6g", absl::ToDoubleMilliseconds(duration));
}

// Empty if there are too few for it.
std::string PercentileCell(const Latencies& latencies, double percent) {
  return latencies.Knows(percent) ? Milliseconds(latencies.Percentile(percent)) : "";
}

std::string PercentileCells(const Latencies& latencies) {
  std::string cells = Milliseconds(latencies.Mean());
  for (const double percent : {50.0, 90.0, 95.0, 99.0, 99.9, 100.0})
    absl::StrAppend(&cells, ",", PercentileCell(latencies, percent));
  return cells;
}

// For each of the server's times, name_p50_ms and name_p99_ms.
std::string ServerColumns() {
  std::string columns;
  for (const ServerTime& time : kServerTimes)
    absl::StrAppend(&columns, ",", time.name, "_p50_ms,", time.name, "_p99_ms");
  return columns;
}

// Empty where the server does not tell.
std::string ServerCells(const ServerTimes& server) {
  std::string cells;
  for (const ServerTime& time : kServerTimes) {
    const Latencies& latencies = server.*time.latencies;
    for (const double percent : {50.0, 99.0})
      absl::StrAppend(&cells, ",", PercentileCell(latencies, percent));
  }
  return cells;
}

void AppendRun(size_t run, const LoadReport& report, std::string* csv) {
  const double elapsed = absl::ToDoubleSeconds(report.elapsed);
  absl::StrAppendFormat(
      csv, "run,%d,%s,0,%.6g,%d,%.6g,%d,%d,%d,%d,%d,%s,%s,%s,%s,%.3g%s\n", run, Quoted(report.name),
      elapsed, report.answered, report.rate(), report.error_count(), report.refusals,
      report.mismatches, report.unsent, report.waiting, PercentileCells(report.latencies),
      PercentileCell(report.service, 50), PercentileCell(report.service, 99),
      PercentileCell(report.lateness, 99), report.cores(), ServerCells(report.server));
  const std::string no_cells = ServerCells({});
  for (const PartReport& part : report.parts) {
    absl::StrAppendFormat(csv, "part,%d,%s,0,%.6g,%d,%.6g,%d,,%d,,,%s,,,,%s\n", run,
                          Quoted(part.name), elapsed, part.answered,
                          elapsed > 0 ? part.answered / elapsed : 0, part.errors, part.mismatches,
                          PercentileCells(part.latencies), no_cells);
  }
  for (const LoadWindow& window : report.windows) {
    const auto cell = [&](double percent, absl::Duration latency) {
      const bool is_known = window.answered >= Latencies::FewestFor(percent);
      return is_known ? Milliseconds(latency) : "";
    };
    absl::StrAppendFormat(csv, "second,%d,%s,%.6g,%.6g,%d,%.6g,%d,,,,%d,,%s,,,%s,,%s,,,,%s\n", run,
                          Quoted(report.name), window.start_s, window.length_s, window.answered,
                          window.answered / window.length_s, window.errors, window.waiting,
                          cell(50, window.p50), cell(99, window.p99), cell(100, window.largest),
                          no_cells);
  }
}

// Whether no load is in two of the records.
absl::Status CheckDistinct(const std::vector<LoadRecord>& records) {
  std::map<std::string, size_t> report_of;  // by load
  for (size_t i = 0; i < records.size(); ++i) {
    for (const LoadOrigin& origin : records[i].origins) {
      const auto [found, is_new] = report_of.emplace(origin.load, i);
      if (is_new) continue;
      return absl::InvalidArgumentError(absl::StrCat("report ", i + 1, " is of a load that report ",
                                                     found->second + 1,
                                                     " has too, which would count twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string ToCsv(const LoadRecord& record) {
  std::string csv = absl::StrCat(kCsvHeader, ServerColumns(), "\n");
  for (size_t run = 0; run < record.runs.size(); ++run) AppendRun(run, record.runs[run], &csv);
  return csv;
}

absl::StatusOr<LoadRecord> MergeRecords(const std::vector<LoadRecord>& records) {
  if (records.empty()) return absl::InvalidArgumentError("no reports to merge");
  LoadRecord merged = records[0];
  if (absl::Status status = CheckDistinct(records); !status.ok()) return status;
  for (size_t i = 1; i < records.size(); ++i) {
    if (records[i].runs.size() != merged.runs.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("report ", i + 1, " has ", records[i].runs.size(), " runs, the first one ",
                       merged.runs.size(), ": these cannot be merged"));
    }
    merged.origins.insert(merged.origins.end(), records[i].origins.begin(),
                          records[i].origins.end());
    if (records[i].title != merged.title) merged.title += " + " + records[i].title;
    for (size_t run = 0; run < merged.runs.size(); ++run)
      merged.runs[run].Merge(records[i].runs[run]);
  }
  return merged;
}

}  // namespace tilewire::client
