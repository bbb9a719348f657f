// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/report_charts.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/load/latency_spans.h"
#include "client/load/report/html_page.h"
#include "client/load/report/svg_chart.h"

namespace tilewire::client {
namespace {

// The last second is drawn from so much of it on.
constexpr double kShortestWindow = 0.5;

using Points = std::vector<std::pair<double, double>>;

std::string LatencyOfSeconds(double seconds) { return LatencyText(absl::Seconds(seconds)); }

// A series for each run that is drawn; `draw` adds what it shows of a run.
template <typename Draw>
std::vector<ChartSeries> SeriesOf(const LoadRecord& record, const ReportColors& colors, Draw draw,
                                  LineStyle style = LineStyle::kSolid) {
  std::vector<ChartSeries> all;
  for (const auto& [run, color] : colors.of_run) {
    all.push_back({record.runs[run].name, color, style, {}});
    draw(record.runs[run], &all.back());
  }
  return all;
}

// As far as there is an answer beyond the percentile p, which stands at the number of its nines,
// -log10(1 - p / 100).
Points PercentileCurve(const Latencies& latencies) {
  Points curve;
  for (double nines = 0; nines <= 4.001 && latencies.count() > 0; nines += 0.02) {
    const double beyond = std::pow(10, -nines);
    if (beyond * latencies.count() < 1) break;
    curve.emplace_back(nines, absl::ToDoubleSeconds(latencies.Percentile(100 * (1 - beyond))));
  }
  return curve;
}

std::string PercentileChart(const std::vector<ChartSeries>& series) {
  return LineChart(
      {.label = "percentile of answers",
       .ticks = {{0, "0"}, {std::log10(2), "50"}, {1, "90"}, {2, "99"}, {3, "99.9"}, {4, "99.99"}}},
      {.is_logarithmic = true, .text = LatencyOfSeconds}, series);
}

std::string PercentilesOfRuns(const LoadRecord& record, const ReportColors& colors) {
  return PercentileChart(
      SeriesOf(record, colors, [](const LoadReport& report, ChartSeries* series) {
        series->points = PercentileCurve(report.latencies);
      }));
}

std::string PercentilesOfParts(const LoadRecord& record, const ReportColors& colors) {
  std::vector<ChartSeries> series;
  for (const auto& [place, color] : colors.of_part) {
    const PartReport& part = record.runs[place.first].parts[place.second];
    series.push_back({part.name, color, LineStyle::kSolid, PercentileCurve(part.latencies)});
  }
  return PercentileChart(series);
}

// The share of the answers in each of 5 to 20 parts of a power of ten: with few answers chance
// would decide how many fall into a narrow one.
void DrawDistribution(const LoadReport& report, ChartSeries* series) {
  const double per_decade = std::clamp(std::floor(std::cbrt(report.answered)), 5.0, 20.0);
  std::map<int, double> bins;
  for (const auto& [bucket, count] : report.latencies.Buckets()) {
    const double seconds = absl::ToDoubleSeconds(Latencies::EndOfBucket(bucket));
    bins[static_cast<int>(std::floor(per_decade * std::log10(std::max(seconds, 1e-9))))] += count;
  }
  if (bins.empty()) return;
  for (int bin = bins.begin()->first - 1; bin <= bins.rbegin()->first + 1; ++bin) {
    const auto found = bins.find(bin);
    const double share = found == bins.end() ? 0 : found->second / report.answered;
    series->points.emplace_back(std::pow(10, (bin + 0.5) / per_decade), 100 * share);
  }
}

std::string DistributionChart(const LoadRecord& record, const ReportColors& colors) {
  return LineChart({.label = "latency", .is_logarithmic = true, .text = LatencyOfSeconds},
                   {.text = [](double share) { return absl::StrFormat("%.3g %%", share); }},
                   SeriesOf(record, colors, DrawDistribution));
}

double MiddleOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Through the median of the runs at each rate that was offered, ascending.
Points MediansByRate(const Points& runs) {
  std::map<double, std::vector<double>> by_rate;
  for (const auto& [rate, latency] : runs) by_rate[rate].push_back(latency);
  Points medians;
  for (auto& [rate, latencies] : by_rate) medians.emplace_back(rate, MiddleOf(latencies));
  return medians;
}

// Whether all runs are open loops of a constant rate, or all are closed loops.
bool AreOffered(const LoadRecord& record) {
  return std::all_of(record.runs.begin(), record.runs.end(),
                     [](const LoadReport& run) { return run.offered > 0; });
}
bool AreClosed(const LoadRecord& record) {
  return std::none_of(record.runs.begin(), record.runs.end(),
                      [](const LoadReport& run) { return run.is_open(); });
}

// A dot for each run. The line leads through the medians where rates were offered; from few callers
// to many in closed loops, whose throughput may fall again; nowhere in a mixture of both.
std::string RateChart(const LoadRecord& record) {
  if (record.runs.size() < 2) return "";
  const bool are_offered = AreOffered(record);
  std::vector<const LoadReport*> runs;
  for (const LoadReport& run : record.runs) runs.push_back(&run);
  std::stable_sort(runs.begin(), runs.end(), [](const LoadReport* a, const LoadReport* b) {
    return a->connections < b->connections;
  });
  std::vector<ChartSeries> series;
  for (const auto& [name, percent, color] :
       {std::tuple{"p50", 50.0, size_t{0}}, {"p99", 99.0, size_t{1}}}) {
    ChartSeries dots{name, color, LineStyle::kDots, {}};
    for (const LoadReport* run : runs) {
      if (!run->latencies.Knows(percent)) continue;
      dots.points.emplace_back(are_offered ? run->offered : run->rate(),
                               absl::ToDoubleSeconds(run->latencies.Percentile(percent)));
    }
    ChartSeries line = dots;
    line.style = LineStyle::kSolid;
    if (are_offered) line.points = MediansByRate(dots.points);
    if (are_offered || AreClosed(record)) series.push_back(std::move(line));
    series.push_back(std::move(dots));
  }
  return LineChart({.label = are_offered ? "requests per second, offered" : "answers per second",
                    .is_logarithmic = true,
                    .text = RateText},
                   {.is_logarithmic = true, .text = LatencyOfSeconds}, series);
}

std::string ThroughputChart(const LoadRecord& record, const ReportColors& colors) {
  const auto draw = [](const LoadReport& report, ChartSeries* series) {
    for (const LoadWindow& window : report.windows) {
      if (window.length_s >= kShortestWindow)
        series->AddLevel(window.start_s, window.end_s(), window.answered / window.length_s);
    }
  };
  return LineChart({.label = "seconds"}, {}, SeriesOf(record, colors, draw));
}

void DrawSpans(const std::vector<LatencySpan>& spans, ChartSeries* series) {
  for (const LatencySpan& span : spans)
    series->AddLevel(span.start_s, span.end_s, absl::ToDoubleSeconds(span.latency));
}

void DrawLargest(const LoadReport& report, ChartSeries* series) {
  for (const LoadWindow& window : report.windows) {
    if (window.answered > 0) {
      series->points.emplace_back((window.start_s + window.end_s()) / 2,
                                  absl::ToDoubleSeconds(window.largest));
    }
  }
}

std::string LatencyOverTimeChart(const LoadRecord& record, const ReportColors& colors) {
  std::vector<ChartSeries> series = SeriesOf(
      record, colors, [](const LoadReport& run, ChartSeries* s) { DrawSpans(P99Spans(run), s); });
  const auto more = {SeriesOf(
                         record, colors,
                         [](const LoadReport& run, ChartSeries* s) { DrawSpans(P50Spans(run), s); },
                         LineStyle::kDashed),
                     SeriesOf(record, colors, DrawLargest, LineStyle::kDots)};
  for (const std::vector<ChartSeries>& some : more)
    series.insert(series.end(), some.begin(), some.end());
  return LineChart({.label = "seconds"}, {.is_logarithmic = true, .text = LatencyOfSeconds},
                   series);
}

}  // namespace

ReportColors::ReportColors(const LoadRecord& record) {
  const size_t runs = record.runs.size();
  const size_t first = record.bound.empty() || runs < kChartColors ? 0 : runs - kChartColors;
  for (size_t run = first; run < runs && of_run.size() < kChartColors; ++run)
    of_run.emplace(run, of_run.size());
  for (const auto& [run, color] : of_run) {
    const size_t parts = record.runs[run].parts.size();
    for (size_t part = 0; parts > 1 && part < parts && of_part.size() < kChartColors; ++part)
      of_part.emplace(std::pair(run, part), of_part.size());
  }
}

std::string ChartsHtml(const LoadRecord& record, const ReportColors& colors) {
  return absl::StrCat(
      HtmlFigure("Latency by percentile", PercentilesOfRuns(record, colors)),
      HtmlFigure("Latency by percentile, parts of the mix", PercentilesOfParts(record, colors)),
      HtmlFigure("Distribution of latency: shares of the answers",
                 DistributionChart(record, colors)),
      HtmlFigure(AreOffered(record) ? "p50 (blue) and p99 (orange) by rate: runs, and their medians"
                                    : "p50 (blue) and p99 (orange) against throughput",
                 RateChart(record)),
      HtmlFigure("Answers in each second", ThroughputChart(record, colors)),
      HtmlFigure("Latency over time: p99 (solid), p50 (dashed), largest of each second (dots)",
                 LatencyOverTimeChart(record, colors)));
}

}  // namespace tilewire::client
