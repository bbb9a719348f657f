// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/report_text.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/load/report/stability.h"

namespace tilewire::client {
namespace {

constexpr double kManyRuns = 0.25;  // of all, in which the client was the limit
constexpr double kWideRange = 1.4;  // of a limit, upper end over lower end
// An event that comes at random, and this often on average in a given time, is missed in one such
// time of 20.
constexpr double kSeenTimes = 3;

// "of 500 answers, 50 beyond p90, 5 beyond p99"
std::string SamplesText(const Latencies& latencies) {
  std::string text = absl::StrCat("of ", CountText(latencies.count(), "answer"));
  for (const double percent : {90.0, 99.0, 99.9}) {
    if (latencies.Knows(percent)) {
      absl::StrAppend(&text, ", ", latencies.CountBeyond(percent), " beyond p", percent);
    } else {
      return absl::StrCat(text, "; p", percent, " needs ", Latencies::FewestFor(percent));
    }
  }
  return text;
}

std::string LatencyLines(const LoadReport& report) {
  if (report.answered == 0) return "";
  std::string text = absl::StrCat("latency     ", report.latencies.ToString(), "\n            (",
                                  SamplesText(report.latencies), ")\n");
  if (report.is_open()) {
    absl::StrAppend(&text, "service     ", report.service.ToString(),
                    "\n            (from when a request was sent, not from when it was due)\n");
    absl::StrAppend(&text, "lateness    ", report.lateness.ToString(), " (of sending)\n");
  }
  absl::StrAppendFormat(&text, "throughput  %.1f requests/s, %.1f rows/s\n", report.rate(),
                        report.rate() * report.rows);
  return text;
}

std::string ServerLines(const LoadReport& report) {
  if (report.server.network.count() == 0) return "";
  std::string text = "where the time went, as the server says (median, p99)\n";
  for (const ServerTime& time : kServerTimes) {
    const Latencies& latencies = report.server.*time.latencies;
    if (latencies.count() == 0) continue;
    absl::StrAppendFormat(&text, "  %-9s %8s  %8s\n", time.name, PercentileText(latencies, 50),
                          PercentileText(latencies, 99));
  }
  return text;
}

std::string PartLines(const LoadReport& report) {
  if (report.parts.size() < 2) return "";
  std::string text;
  for (const PartReport& part : report.parts) {
    absl::StrAppendFormat(&text, "  %s: %s, %s, %d differ, p50 %s, p99 %s\n", ShownText(part.name),
                          CountText(part.answered, "answer"), CountText(part.errors, "error"),
                          part.mismatches, PercentileText(part.latencies, 50),
                          PercentileText(part.latencies, 99));
  }
  return text;
}

std::string ErrorLines(const LoadReport& report) {
  std::string text =
      absl::StrFormat("errors      %d, answers that differ from what was expected: %d\n",
                      report.error_count(), report.mismatches);
  for (const auto& [code, errors] : report.errors)
    absl::StrAppendFormat(&text, "            %d %s\n", errors, absl::StatusCodeToString(code));
  if (report.refusals > 0) {
    absl::StrAppendFormat(&text, "            %d of them were refusals that asked for a pause\n",
                          report.refusals);
  }
  if (report.unsent > 0) {
    absl::StrAppendFormat(&text,
                          "unsent      %d: too many answers were outstanding (--max_waiting)\n",
                          report.unsent);
  }
  if (!report.first_error.empty())
    absl::StrAppend(&text, "first       ", ShownText(report.first_error), "\n");
  return text;
}

// As a command line takes it: "1890", "0.35".
std::string RoundRate(double rate) {
  return rate < 100 ? absl::StrFormat("%.3g", rate) : absl::StrFormat("%.0f", rate);
}

// Where this client may have been the limit in a search.
std::string ClientLine(const LoadRecord& record) {
  const auto limited =
      std::count_if(record.runs.begin(), record.runs.end(),
                    [](const LoadReport& run) { return !ClientLimits(run).empty(); });
  if (limited < kManyRuns * static_cast<double>(record.runs.size()) || limited == 0) return "";
  return absl::StrFormat(
      "limited     in %d of %d runs this client sent late or had no core left: it may be what "
      "limits\n",
      limited, record.runs.size());
}

// The range of a search's limit, and what may be wrong with it.
std::string LimitLines(const LoadRecord& record) {
  if (record.fails == 0) return "no rate was found at which it does not hold\n";
  std::string text = absl::StrCat("its limit lies between ", RoundRate(record.low), "/s and ",
                                  RoundRate(record.fails), "/s");
  if (record.fails > kWideRange * record.low) {
    absl::StrAppend(&text, "; that is wide: more --search_time or a steadier machine narrows it");
  }
  absl::Duration measured;
  for (const LoadReport& run : record.runs) measured += run.elapsed;
  if (measured == absl::ZeroDuration()) return absl::StrCat(text, "\n");
  absl::StrAppendFormat(&text,
                        "\nmeasured for %.0f s: pauses and slow times that come less often than "
                        "every %.0f s may be missing in it\n",
                        absl::ToDoubleSeconds(measured),
                        std::ceil(absl::ToDoubleSeconds(measured) / kSeenTimes));
  return absl::StrCat(text, ClientLine(record));
}

std::string NoteLines(const LoadReport& report) {
  std::string text;
  if (report.ended_early()) {
    absl::StrAppend(&text, "note        the load was ended early: ", report.ended_because, "\n");
  }
  for (const std::string& reason : ClientLimits(report))
    absl::StrAppend(&text, "limited     ", reason, "\n");
  for (const std::string& reason : WhyUnstable(report))
    absl::StrAppend(&text, "unstable    ", reason, "\n");
  if (!report.is_open() && report.answered > 0) {
    absl::StrAppendFormat(&text,
                          "note        callers that wait send nothing during a pause; what "
                          "independent\n            users see is measured by --rate, such as "
                          "--rate=%s\n",
                          RoundRate(0.7 * report.rate()));
  }
  return text;
}

}  // namespace

std::string ReportText(const LoadReport& report) {
  std::string text = absl::StrFormat(
      "measured    %.1f s from %s, on %s\n", absl::ToDoubleSeconds(report.elapsed),
      absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", report.started, absl::UTCTimeZone()),
      CountText(report.connections, "connection"));
  absl::StrAppend(&text, LatencyLines(report));
  absl::StrAppend(&text, PartLines(report), ServerLines(report), ErrorLines(report));
  if (report.elapsed > absl::ZeroDuration())
    absl::StrAppendFormat(&text, "this client used %.0f %% of a core\n", 100 * report.cores());
  return absl::StrCat(text, NoteLines(report));
}

std::string ComparisonText(const std::vector<LoadReport>& runs) {
  int width = 0;
  for (const LoadReport& run : runs) width = std::max(width, static_cast<int>(run.name.size()));
  std::string text = absl::StrFormat("%-*s %5s %7s %6s %7s %7s %7s %6s\n", width, "", "s",
                                     "answers", "per s", "p50", "p99", "max", "errors");
  for (const LoadReport& run : runs) {
    absl::StrAppendFormat(&text, "%-*s %5.0f %7d %6s %7s %7s %7s %6d\n", width, run.name,
                          absl::ToDoubleSeconds(run.elapsed), run.answered, RateText(run.rate()),
                          PercentileText(run.latencies, 50), PercentileText(run.latencies, 99),
                          PercentileText(run.latencies, 100), run.failed_count());
  }
  return text;
}

std::string SearchText(const LoadRecord& record) {
  const std::string& bound = record.bound;
  if (record.low == 0 && record.fails == 0)
    return absl::StrCat("whether ", bound, " holds was not found out\n");
  if (record.low == 0) {
    return absl::StrCat(bound, " holds at no rate that was tried, not at ", RoundRate(record.fails),
                        "/s either\n");
  }
  const std::string limit = LimitLines(record);
  if (record.holds == 0) {
    return absl::StrCat(bound, ": no long run confirmed a rate in the time of the search\n", limit);
  }
  std::string text = absl::StrCat(bound, " holds at ", RoundRate(record.holds), "/s");
  // The long run comes last.
  if (!record.runs.empty()) {
    const LoadReport& last = record.runs.back();
    absl::StrAppendFormat(&text, ": %s in a last run of %.1f s at %s/s, %s",
                          PercentileText(last.latencies, 99), absl::ToDoubleSeconds(last.elapsed),
                          RoundRate(last.offered), CountText(last.answered, "answer"));
  }
  return absl::StrCat(text, "\n", limit);
}

std::string VerdictText(const std::vector<Verdict>& verdicts) {
  std::string text;
  for (const Verdict& verdict : verdicts) {
    absl::StrAppend(&text, verdict.met ? "met         " : "NOT MET     ", verdict.text, ": ",
                    verdict.measured, "\n");
  }
  return text;
}

std::string ProgressText(const LoadReport& so_far) {
  return absl::StrFormat("%s/s p50 %s p99 %s %s", RateText(so_far.rate()),
                         PercentileText(so_far.latencies, 50), PercentileText(so_far.latencies, 99),
                         CountText(so_far.failed_count(), "error"));
}

}  // namespace tilewire::client
