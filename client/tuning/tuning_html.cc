// SPDX-License-Identifier: Apache-2.0
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
  const TuningResult& result = report.result;
  const ErrorMeasure measure = report.budget.measure();
  std::string rows = FactRow("budget", report.budget.ToString());
  if (result.held_out.examples > 0) {
    absl::StrAppend(&rows, FactRow("held out", MeasuredText(measure, result.held_out)),
                    FactRow("chosen on", MeasuredText(measure, result.chosen)),
                    FactRow("l2", L2Text(result)),
                    FactRow("time", absl::StrFormat("%.3g ms exact, %.3g ms tuned",
                                                    absl::ToDoubleMilliseconds(result.exact_time),
                                                    absl::ToDoubleMilliseconds(result.tuned_time))),
                    FactRow("file", absl::StrCat(BytesText(result.exact_bytes), " exact, ",
                                                 BytesText(result.tuned_bytes), " tuned")));
  }
  return HtmlTable("Result", "<th><th>", rows, " class=facts");
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
std::string CurveFigure(const TuningResult& result) {
  ChartSeries tried{"tried", 1, LineStyle::kDots, {}}, chosen{"chosen", 0, LineStyle::kDots, {}};
  for (const TriedPoint& point : result.curve) {
    if (!std::isfinite(point.error)) continue;
    (point.is_chosen ? chosen : tried)
        .points.emplace_back(absl::ToDoubleMilliseconds(point.estimate), point.error);
  }
  if (tried.points.empty() && chosen.points.empty()) return "";
  return HtmlFigure("The error of each assignment that was tried, and its time by that of layers",
                    LineChart({.label = "ms"}, {}, {tried, chosen}));
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
                   "<div class=charts>\n", ErrorFigure(report.result), CurveFigure(report.result),
                   "</div>\n", LayerTable(report.result), HtmlSettings(report.settings),
                   "<footer>tilewire tune. Errors of the result are of examples that "
                   "were not used for choosing; times are of this machine.</footer>"));
}

}  // namespace tilewire::client
