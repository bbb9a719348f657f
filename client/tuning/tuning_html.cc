// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/amount_text.h"
#include "client/load/report/html_page.h"
#include "client/load/report/svg_chart.h"
#include "client/tuning/tuning_report.h"

namespace tilewire::client {
namespace {

std::string FactRow(absl::string_view name, absl::string_view text) {
  return absl::StrCat("<tr><td>", name, "<td>", HtmlText(text), "</tr>\n");
}

std::string FactTable(const TuningReport& report) {
  std::string rows;
  for (const auto& [name, text] : TuningFigures(report))
    absl::StrAppend(&rows, FactRow(name, text));
  if (rows.empty()) rows = FactRow("budget", report.budget.ToString());
  return HtmlTable("Result", "<th><th>", rows, " class=facts");
}

std::string ChangedAnswersTable(const TuningReport& report) {
  std::string rows;
  const std::vector<ChangedAnswer>& changed = report.result.changed;
  for (size_t i = 0; i < changed.size() && i < kMostChangedInHtml; ++i) {
    const ChangedWords words = WordsOf(report, changed[i]);
    const auto picture = report.pictures.find(changed[i].example);
    absl::StrAppend(&rows, "<tr><td>",
                    picture == report.pictures.end() ? "" : picture->second.thumbnail, "<td>",
                    HtmlText(words.example), "<td>", HtmlText(words.exact), "<td>",
                    HtmlText(words.tuned), "<td>", HtmlText(words.label), "</tr>\n");
  }
  return HtmlTable("Answers that changed on held-out inputs, with their probabilities",
                   "<th><th>input<th>exact<th>tuned<th>right", rows, " class=facts");
}

std::string LayerTable(const TuningResult& result) {
  std::string rows;
  for (const TunedNode& node : result.nodes) {
    absl::StrAppend(
        &rows, "<tr><td>", HtmlText(node.node), "<td>", HtmlText(node.op), "<td>",
        NameOf(node.precision), "<td>", HtmlText(node.reason), "<td>", HtmlText(node.input), "<td>",
        absl::StrFormat("%.4g to %.4g, by %s", node.low, node.high, node.range_method), "</tr>\n");
  }
  return HtmlTable("Layers", "<th>layer<th>operator<th>precision<th>why<th>reads<th>range", rows,
                   " class=facts");
}

// Each layer by the time that it saves and the error that it causes alone: as it was chosen, or
// with int8 where it is exact.
std::string ErrorFigure(const TuningResult& result) {
  ChartSeries exact{"exact", 1, LineStyle::kDots, {}}, bf16{"bf16", 2, LineStyle::kDots, {}},
      int8{"int8", 0, LineStyle::kDots, {}};
  for (const TunedNode& node : result.nodes) {
    const bool is_bf16 = node.precision == TunedPrecision::kBf16;
    const double saved =
        absl::ToDoubleMicroseconds(node.exact_time - (is_bf16 ? node.bf16_time : node.int8_time));
    const double error = is_bf16 ? node.bf16_alone : node.error_alone;
    if (error <= 0 || saved < 0) continue;
    ChartSeries& series = is_bf16 ? bf16 : node.precision == TunedPrecision::kInt8 ? int8 : exact;
    series.points.emplace_back(saved, error);
  }
  if (exact.points.empty() && bf16.points.empty() && int8.points.empty()) return "";
  return HtmlFigure("The error that each layer causes alone (l2), and the time that it saves",
                    LineChart({.label = "us saved"}, {}, {int8, exact, bf16}));
}

// The error of what was tried, against its time.
std::string CurveFigure(const TuningReport& report) {
  const ErrorMeasure measure = report.budget.measure();
  const double unit = measure == ErrorMeasure::kTop1Changed ? 100 : 1;
  ChartSeries tried{"tried", 1, LineStyle::kDots, {}}, chosen{"chosen", 0, LineStyle::kDots, {}};
  ChartSeries best{"best", 1, LineStyle::kSolid, {}}, limit{"budget", 2, LineStyle::kDashed, {}};
  for (const TriedPoint& point : report.result.curve) {
    if (!std::isfinite(point.error)) continue;
    (point.is_chosen ? chosen : tried)
        .points.emplace_back(absl::ToDoubleMilliseconds(point.estimate), unit * point.error);
  }
  if (tried.points.empty() && chosen.points.empty()) return "";
  double latest = 0;
  for (const ChartSeries* series : {&tried, &chosen}) {
    for (const auto& point : series->points) latest = std::max(latest, point.first);
  }
  for (const TriedPoint& point : BestPoints(report)) {
    if (std::isfinite(point.error))
      best.points.emplace_back(absl::ToDoubleMilliseconds(point.estimate), unit * point.error);
  }
  limit.points = {{0, unit * report.budget.limit()}, {latest, unit * report.budget.limit()}};
  const absl::string_view of_measure = measure == ErrorMeasure::kTop1Changed ? "answers changed, %"
                                       : measure == ErrorMeasure::kPsnr      ? "psnr, dB"
                                                                             : "l2";
  return HtmlFigure(
      absl::StrCat("The error of each assignment that was tried (", of_measure,
                   ") and its time by that of layers; dashed: the budget; the other colour: the "
                   "chosen one"),
      LineChart({.label = "ms"}, {}, {tried, best, limit, chosen}));
}

}  // namespace

std::string TuningHtml(const TuningReport& report) {
  const std::string summary =
      report.written.empty()
          ? "nothing was written"
          : absl::StrCat("written to ", HtmlText(absl::StrJoin(report.written, " and ")));
  return HtmlPage(
      absl::StrCat("Tuning of ", report.model),
      absl::StrCat("<p>", summary, "</p>\n", FactTable(report), HtmlNotes(TuningNotes(report)),
                   ChangedAnswersTable(report), "<div class=charts>\n", ErrorFigure(report.result),
                   CurveFigure(report), "</div>\n", LayerTable(report.result),
                   HtmlSettings(report.settings),
                   "<footer>tilewire tune. Errors of the result are of examples that "
                   "were not used for choosing; times are of this machine.</footer>"));
}

}  // namespace tilewire::client
