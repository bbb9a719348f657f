// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/report_html.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/amount_text.h"
#include "client/load/report/html_page.h"
#include "client/load/report/report_charts.h"
#include "client/load/report/report_text.h"
#include "client/load/report/stability.h"
#include "client/load/report/svg_chart.h"

namespace tilewire::client {
namespace {

template <typename Number>
std::string Key(const std::map<Number, size_t>& colors, const Number& number) {
  const auto found = colors.find(number);
  if (found == colors.end()) return "";
  return absl::StrCat("<span class=key style=\"background:", ChartColor(found->second),
                      "\"></span>");
}

// The first cell of a row.
std::string RunCell(const LoadRecord& record, const ReportColors& colors, size_t run) {
  return absl::StrCat("<tr><td>", Key(colors.of_run, run), HtmlText(record.runs[run].name));
}

std::string FactTable(const LoadRecord& record) {
  std::string rows;
  for (const LoadOrigin& origin : record.origins) {
    if (origin.client.empty()) continue;
    absl::StrAppend(&rows, "<tr><td>", HtmlText(origin.server), "<td>", HtmlText(origin.client),
                    "<td>", HtmlText(origin.host), "<td>", origin.seed, "<td>",
                    absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", origin.began, absl::UTCTimeZone()),
                    "</tr>\n");
  }
  return HtmlTable("Measured", "<th>server<th>client<th>on<th>seed<th>began", rows, " class=facts");
}

// With how many answers are beyond it.
std::string PercentileWithCount(const Latencies& latencies, double percent) {
  const std::string text = PercentileText(latencies, percent);
  if (!latencies.Knows(percent) || percent <= 50 || percent >= 100) return text;
  return absl::StrCat(text, " <small>(", latencies.CountBeyond(percent), ")</small>");
}

std::string RunTable(const LoadRecord& record, const ReportColors& colors) {
  std::string rows;
  for (size_t run = 0; run < record.runs.size(); ++run) {
    const LoadReport& report = record.runs[run];
    absl::StrAppendFormat(&rows, "%s<td>%.1f s<td>%d<td>%d<td>%s<td>%s",
                          RunCell(record, colors, run), absl::ToDoubleSeconds(report.elapsed),
                          report.connections, report.answered, RateText(report.rate()),
                          report.answered > 0 ? LatencyText(report.latencies.Mean()) : "-");
    for (const double percent : {50.0, 90.0, 99.0, 99.9, 100.0})
      absl::StrAppend(&rows, "<td>", PercentileWithCount(report.latencies, percent));
    for (const int64_t count : {report.error_count(), report.mismatches, report.unsent})
      absl::StrAppend(&rows, count > 0 ? "<td class=bad>" : "<td>", count);
    absl::StrAppendFormat(&rows, "<td>%.2f</tr>\n", report.cores());
  }
  const std::string table = HtmlTable(
      "Runs",
      "<th>run<th>duration<th>connections<th>answers<th>per s<th>mean<th>p50<th>p90<th>p99<th>p99.9"
      "<th>max<th>errors<th>differ<th>unsent<th>client's cores",
      rows);
  const size_t drawn = colors.of_run.size();
  return absl::StrCat(table, "<p><small>In brackets: how many answers are beyond the percentile.",
                      drawn < record.runs.size()
                          ? absl::StrCat(" The charts show the ", drawn, " runs that have a color.")
                          : "",
                      "</small></p>\n");
}

std::string ErrorTable(const LoadRecord& record, const ReportColors& colors) {
  std::string rows;
  for (size_t run = 0; run < record.runs.size(); ++run) {
    for (const auto& [code, count] : record.runs[run].errors) {
      absl::StrAppend(&rows, RunCell(record, colors, run), "<td>", absl::StatusCodeToString(code),
                      "<td>", count, "</tr>\n");
    }
  }
  return HtmlTable("Errors", "<th>run<th>code<th>count", rows);
}

std::string PartTable(const LoadRecord& record, const ReportColors& colors) {
  std::string rows;
  for (size_t run = 0; run < record.runs.size(); ++run) {
    const std::vector<PartReport>& parts = record.runs[run].parts;
    for (size_t i = 0; parts.size() > 1 && i < parts.size(); ++i) {
      absl::StrAppend(&rows, "<tr><td>", Key(colors.of_part, std::pair(run, i)),
                      HtmlText(parts[i].name), "<td>", HtmlText(record.runs[run].name), "<td>",
                      parts[i].answered, "<td>", parts[i].errors, "<td>",
                      PercentileWithCount(parts[i].latencies, 50), "<td>",
                      PercentileWithCount(parts[i].latencies, 99), "</tr>\n");
    }
  }
  return HtmlTable("Parts of the mix", "<th>part<th>run<th>answers<th>errors<th>p50<th>p99", rows);
}

std::string ServerTable(const LoadRecord& record, const ReportColors& colors) {
  std::string rows, head = "<th>run";
  for (const ServerTime& time : kServerTimes) absl::StrAppend(&head, "<th>", time.name);
  for (size_t run = 0; run < record.runs.size(); ++run) {
    const ServerTimes& server = record.runs[run].server;
    if (server.network.count() == 0) continue;
    absl::StrAppend(&rows, RunCell(record, colors, run));
    for (const ServerTime& time : kServerTimes) {
      const Latencies& latencies = server.*time.latencies;
      absl::StrAppend(&rows, "<td>");
      if (latencies.count() == 0) continue;
      absl::StrAppend(&rows, PercentileText(latencies, 50), " / ", PercentileText(latencies, 99));
    }
    absl::StrAppend(&rows, "</tr>\n");
  }
  return HtmlTable("Where the time went, as the server says (p50 / p99)", head, rows);
}

std::string DifferenceTables(const LoadRecord& record) {
  std::string tables;
  for (const LoadComparison& comparison : record.comparisons) {
    std::string rows;
    for (const LoadDifference& load : comparison.loads) {
      absl::StrAppend(&rows, "<tr><td>", HtmlText(load.name));
      for (const auto& figure : {load.rate, load.p50, load.p99})
        absl::StrAppend(&rows, "<td>", DifferenceText(figure));
      absl::StrAppend(&rows, "</tr>\n");
    }
    absl::StrAppend(
        &tables,
        HtmlTable(HtmlText(absl::StrCat(comparison.later, " against ", comparison.earlier)),
                  "<th>run<th>per s<th>p50<th>p99", rows));
  }
  if (tables.empty()) return "";
  return absl::StrCat(tables, "<p><small>", kSpreadNote, "</small></p>\n");
}

std::string DoubtList(const LoadRecord& record) {
  std::string items;
  for (const std::string& doubt : Doubts(record))
    absl::StrAppend(&items, "<li>", HtmlText(doubt), "</li>\n");
  return items.empty() ? "" : absl::StrCat("<h2>Doubts</h2><ul>\n", items, "</ul>\n");
}

std::string SearchParagraph(const LoadRecord& record) {
  if (record.bound.empty()) return "";
  return absl::StrCat("<p>", absl::StrReplaceAll(HtmlText(SearchText(record)), {{"\n", "<br>\n"}}),
                      "</p>\n");
}

}  // namespace

std::string ToHtml(const LoadRecord& record) {
  const ReportColors colors(record);
  return HtmlPage(
      record.title,
      absl::StrCat(
          SearchParagraph(record), RunTable(record, colors), DifferenceTables(record),
          "<h2>Charts</h2><div class=charts>\n", ChartsHtml(record, colors), "</div>\n",
          ErrorTable(record, colors), PartTable(record, colors), ServerTable(record, colors),
          DoubtList(record), FactTable(record),
          "<footer>tilewire load. Latency counts from when a request was due. Over time, counts "
          "are those of single seconds; a percentile is drawn over the time that it is of: seconds "
          "are joined until they have 100 answers for p99, 10 for p50. A percentile p needs "
          "100 / (100 - p) answers; of fewer there is none.</footer>"));
}

}  // namespace tilewire::client
