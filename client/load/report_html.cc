// SPDX-License-Identifier: Apache-2.0
#include "client/load/report_html.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/report_text.h"
#include "client/load/stability.h"
#include "client/load/svg_chart.h"

namespace tilewire::client {
namespace {

constexpr size_t kMostLines = 8;  // as many as there are colors
// Of seconds that are drawn: the last one may be too short to say anything.
constexpr double kShortestWindow = 0.5;
// Seconds with fewer answers are joined until they have so many: the p99 of a few answers is their
// largest latency, which jumps from second to second.
constexpr int64_t kFewestAnswers = 100;

constexpr char kStyle[] = R"(
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.2em auto; max-width: 1240px;
  padding: 0 .8em; color: #1b1b1b; background: #fff; }
h1 { font-size: 1.35em; overflow-wrap: anywhere; } h2 { font-size: 1.1em; margin: 1.6em 0 .4em; }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .93em; }
th, td { padding: .25em .7em; text-align: right; white-space: nowrap;
  border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; } th { font-weight: 600; }
.charts { display: grid; gap: 1.2em; grid-template-columns: repeat(auto-fit, minmax(330px, 1fr)); }
figure { margin: 0; } figcaption { font-weight: 600; } svg { width: 100%; height: auto; }
svg text { font: 11px system-ui, sans-serif; fill: #333; } .grid { stroke: #e3e3e3; }
polyline { fill: none; stroke-width: 1.7; stroke-linejoin: round; }
.key { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .5em; }
.bad { color: #b00020; font-weight: 600; } li { margin: .2em 0; } footer { color: #666;
  margin-top: 2em; font-size: .87em; }
@media (max-width: 600px) { th, td { padding: .25em .4em; }
  td:first-child { white-space: normal; min-width: 6em; } })";

std::string LatencyOfSeconds(double seconds) { return LatencyText(absl::Seconds(seconds)); }

std::string Key(size_t run) {
  return run < kMostLines
             ? absl::StrCat("<span class=key style=\"background:", ChartColor(run), "\"></span>")
             : "";
}

std::string Figure(absl::string_view caption, const std::string& chart) {
  if (chart.empty()) return "";
  return absl::StrCat("<figure><figcaption>", caption, "</figcaption>", chart, "</figure>\n");
}

// A series for each run that `points` finds something of.
template <typename Points>
std::vector<ChartSeries> SeriesOf(const LoadRecord& record, Points points, bool is_dashed = false) {
  std::vector<ChartSeries> all;
  for (size_t run = 0; run < std::min(record.runs.size(), kMostLines); ++run)
    all.push_back({record.runs[run].name, run, is_dashed, points(record.runs[run])});
  return all;
}

std::string PercentileChart(const LoadRecord& record) {
  // A percentile p stands at the number of its nines, -log10(1 - p / 100).
  const auto points = [](const LoadReport& report) {
    std::vector<std::pair<double, double>> curve;
    for (double nines = 0; nines <= 4.001 && report.answered > 0; nines += 0.02) {
      const double beyond = std::pow(10, -nines);
      if (beyond * report.answered < 1) break;
      curve.emplace_back(nines,
                         absl::ToDoubleSeconds(report.latencies.Percentile(100 * (1 - beyond))));
    }
    return curve;
  };
  return LineChart(
      {.label = "percentile of answers",
       .ticks = {{0, "0"}, {std::log10(2), "50"}, {1, "90"}, {2, "99"}, {3, "99.9"}, {4, "99.99"}}},
      {.is_logarithmic = true, .text = LatencyOfSeconds}, SeriesOf(record, points));
}

std::string DistributionChart(const LoadRecord& record) {
  // The share of the answers in each of 5 to 20 parts of a power of ten: of few answers chance
  // would decide how many fall into a narrow one.
  const auto points = [](const LoadReport& report) {
    const double per_decade = std::clamp(std::floor(std::cbrt(report.answered)), 5.0, 20.0);
    std::map<int, double> bins;
    for (const auto& [bucket, count] : report.latencies.Buckets()) {
      const double seconds = absl::ToDoubleSeconds(Latencies::EndOfBucket(bucket));
      bins[static_cast<int>(std::floor(per_decade * std::log10(std::max(seconds, 1e-9))))] += count;
    }
    std::vector<std::pair<double, double>> curve;
    if (bins.empty()) return curve;
    for (int bin = bins.begin()->first - 1; bin <= bins.rbegin()->first + 1; ++bin) {
      const auto found = bins.find(bin);
      const double share = found == bins.end() ? 0 : found->second / report.answered;
      curve.emplace_back(std::pow(10, (bin + 0.5) / per_decade), 100 * share);
    }
    return curve;
  };
  return LineChart({.label = "latency", .is_logarithmic = true, .text = LatencyOfSeconds},
                   {.text = [](double share) { return absl::StrFormat("%.3g %%", share); }},
                   SeriesOf(record, points));
}

std::string RateChart(const LoadRecord& record) {
  if (record.runs.size() < 2) return "";
  std::vector<ChartSeries> series;
  for (const auto& [name, percent] : {std::pair{"p50", 50.0}, {"p99", 99.0}}) {
    ChartSeries one{name, series.size(), false, {}};
    for (const LoadReport& report : record.runs) {
      if (report.answered > 0) {
        one.points.emplace_back(report.rate(),
                                absl::ToDoubleSeconds(report.latencies.Percentile(percent)));
      }
    }
    std::sort(one.points.begin(), one.points.end());
    series.push_back(std::move(one));
  }
  return LineChart({.label = "answers per second"},
                   {.is_logarithmic = true, .text = LatencyOfSeconds}, series);
}

// The p99 of joined seconds is the largest of theirs, the p50 their mean.
void Join(const LoadWindow& later, LoadWindow* window) {
  const int64_t answered = window->answered + later.answered;
  if (answered > 0) {
    window->p50 = (static_cast<double>(window->answered) * window->p50 +
                   static_cast<double>(later.answered) * later.p50) /
                  static_cast<double>(answered);
  }
  window->answered = answered;
  window->length_s += later.length_s;
  window->p99 = std::max(window->p99, later.p99);
}

// What is drawn over time. Seconds at the end that have too few answers belong to the window before
// them.
std::vector<LoadWindow> DrawnWindows(const LoadReport& report) {
  std::vector<LoadWindow> drawn;
  for (const LoadWindow& window : report.windows) {
    if (window.length_s < kShortestWindow) continue;
    if (drawn.empty() || drawn.back().answered >= kFewestAnswers) {
      drawn.push_back(window);
    } else {
      Join(window, &drawn.back());
    }
  }
  if (drawn.size() > 1 && drawn.back().answered < kFewestAnswers) {
    Join(drawn.back(), &drawn[drawn.size() - 2]);
    drawn.pop_back();
  }
  return drawn;
}

double MiddleOf(const LoadWindow& window) { return window.start_s + window.length_s / 2; }

std::string ThroughputChart(const LoadRecord& record) {
  const auto points = [](const LoadReport& report) {
    std::vector<std::pair<double, double>> curve;
    for (const LoadWindow& window : DrawnWindows(report))
      curve.emplace_back(MiddleOf(window), window.answered / window.length_s);
    return curve;
  };
  return LineChart({.label = "seconds"}, {}, SeriesOf(record, points));
}

std::string LatencyOverTimeChart(const LoadRecord& record) {
  const auto points = [](absl::Duration LoadWindow::*percentile) {
    return [percentile](const LoadReport& report) {
      std::vector<std::pair<double, double>> curve;
      for (const LoadWindow& window : DrawnWindows(report)) {
        if (window.answered > 0)
          curve.emplace_back(MiddleOf(window), absl::ToDoubleSeconds(window.*percentile));
      }
      return curve;
    };
  };
  std::vector<ChartSeries> series = SeriesOf(record, points(&LoadWindow::p99));
  for (ChartSeries& dashed : SeriesOf(record, points(&LoadWindow::p50), true))
    series.push_back(std::move(dashed));
  return LineChart({.label = "seconds"}, {.is_logarithmic = true, .text = LatencyOfSeconds},
                   series);
}

std::string RunTable(const LoadRecord& record) {
  std::string html =
      "<h2>Runs</h2><div class=scroll><table><tr><th>run<th>answers<th>per s<th>mean<th>p50<th>p90"
      "<th>p99<th>p99.9<th>max<th>errors<th>differ<th>unsent<th>client, cores</tr>\n";
  for (size_t run = 0; run < record.runs.size(); ++run) {
    const LoadReport& report = record.runs[run];
    absl::StrAppendFormat(&html, "<tr><td>%s%s<td>%d<td>%.4g<td>%s", Key(run),
                          HtmlText(report.name), report.answered, report.rate(),
                          report.answered > 0 ? LatencyText(report.latencies.Mean()) : "-");
    for (const double percent : {50.0, 90.0, 99.0, 99.9, 100.0})
      absl::StrAppend(&html, "<td>", PercentileText(report.latencies, percent));
    for (const int64_t count : {report.error_count(), report.mismatches, report.unsent})
      absl::StrAppend(&html, count > 0 ? "<td class=bad>" : "<td>", count);
    absl::StrAppendFormat(&html, "<td>%.2g</tr>\n", report.cores());
  }
  return html + "</table></div>\n";
}

// Rows of errors, parts and the server's times, below one head each; nothing if there are none.
std::string Section(absl::string_view title, absl::string_view head, const std::string& rows) {
  if (rows.empty()) return "";
  return absl::StrCat("<h2>", title, "</h2><div class=scroll><table><tr>", head, "</tr>\n", rows,
                      "</table></div>\n");
}

std::string ErrorTable(const LoadRecord& record) {
  std::string rows;
  for (size_t run = 0; run < record.runs.size(); ++run) {
    for (const auto& [code, count] : record.runs[run].errors) {
      absl::StrAppend(&rows, "<tr><td>", Key(run), HtmlText(record.runs[run].name), "<td>",
                      absl::StatusCodeToString(code), "<td>", count, "</tr>\n");
    }
  }
  return Section("Errors", "<th>run<th>code<th>count", rows);
}

std::string PartTable(const LoadRecord& record) {
  std::string rows;
  for (size_t run = 0; run < record.runs.size(); ++run) {
    if (record.runs[run].parts.size() < 2) continue;
    for (const PartReport& part : record.runs[run].parts) {
      absl::StrAppend(&rows, "<tr><td>", Key(run), HtmlText(part.name), "<td>", part.answered,
                      "<td>", part.errors, "<td>", PercentileText(part.latencies, 50), "<td>",
                      PercentileText(part.latencies, 99), "</tr>\n");
    }
  }
  return Section("Parts of the mix", "<th>part<th>answers<th>errors<th>p50<th>p99", rows);
}

std::string ServerTable(const LoadRecord& record) {
  std::string rows, head = "<th>run";
  for (const ServerTime& time : kServerTimes) absl::StrAppend(&head, "<th>", time.name);
  for (size_t run = 0; run < record.runs.size(); ++run) {
    const ServerTimes& server = record.runs[run].server;
    if (server.network.count() == 0) continue;
    absl::StrAppend(&rows, "<tr><td>", Key(run), HtmlText(record.runs[run].name));
    for (const ServerTime& time : kServerTimes) {
      const Latencies& latencies = server.*time.latencies;
      absl::StrAppend(&rows, "<td>");
      if (latencies.count() == 0) continue;
      absl::StrAppend(&rows, LatencyText(latencies.Percentile(50)), " / ",
                      LatencyText(latencies.Percentile(99)));
    }
    absl::StrAppend(&rows, "</tr>\n");
  }
  return Section("Where the time went, as the server says (p50 / p99)", head, rows);
}

std::string DoubtList(const LoadRecord& record) {
  std::string items;
  for (const std::string& doubt : Doubts(record))
    absl::StrAppend(&items, "<li>", HtmlText(doubt), "</li>\n");
  return items.empty() ? "" : absl::StrCat("<h2>Doubts</h2><ul>\n", items, "</ul>\n");
}

}  // namespace

std::string ToHtml(const LoadRecord& record) {
  const std::string started =
      record.runs.empty()
          ? ""
          : absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", record.runs[0].started, absl::UTCTimeZone());
  return absl::StrCat(
      "<!doctype html>\n<html lang=en><head><meta charset=utf-8>\n"
      "<meta name=viewport content=\"width=device-width, initial-scale=1\">\n<title>",
      HtmlText(record.title), "</title><style>", kStyle, "</style></head><body>\n<h1>",
      HtmlText(record.title), "</h1>\n",
      record.bound.empty() ? "" : absl::StrCat("<p>", HtmlText(SearchText(record)), "</p>\n"),
      RunTable(record), "<h2>Charts</h2><div class=charts>\n",
      Figure("Latency by percentile", PercentileChart(record)),
      Figure("Distribution of latency", DistributionChart(record)),
      Figure("p50 (blue) and p99 (orange) against throughput", RateChart(record)),
      Figure("Answers per second, over time", ThroughputChart(record)),
      Figure("p99 (solid) and p50 (dashed), over time", LatencyOverTimeChart(record)), "</div>\n",
      ErrorTable(record), PartTable(record), ServerTable(record), DoubtList(record),
      "<footer>tilewire load, ", started,
      ". Latency counts from when a request was due. Over time, seconds with few answers are "
      "joined "
      "until they have a hundred; their p99 is the largest of theirs.</footer></body></html>\n");
}

}  // namespace tilewire::client
