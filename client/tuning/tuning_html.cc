// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
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

std::string TimeColumn(absl::Duration time) {
  return time == absl::ZeroDuration()
             ? "<td>-"
             : absl::StrFormat("<td>%.1f", absl::ToDoubleMicroseconds(time));
}

std::string ErrorColumn(double error) {
  return error < 0 ? "<td>-" : absl::StrFormat("<td>%.1e", error);
}

// The columns of bf16 and of rows are there where any layer has them.
std::string LayerTable(const TuningResult& result) {
  const bool has_bf16 =
      absl::c_any_of(result.nodes, [](const TunedNode& node) { return node.bf16_alone >= 0; });
  const bool has_rows =
      absl::c_any_of(result.nodes, [](const TunedNode& node) { return !node.row.empty(); });
  std::string rows;
  for (const TunedNode& node : result.nodes) {
    absl::StrAppend(&rows, "<tr><td>", HtmlText(node.node), "<td>", HtmlText(node.op), "<td>",
                    NameOf(node.precision), TimeColumn(node.exact_time),
                    has_bf16 ? TimeColumn(node.bf16_time) + ErrorColumn(node.bf16_alone) : "",
                    TimeColumn(node.int8_time), ErrorColumn(node.error_alone));
    if (has_rows) absl::StrAppend(&rows, "<td>", HtmlText(node.row));
    absl::StrAppend(
        &rows, "<td class=wide>", HtmlText(node.reason), "<td>", HtmlText(node.input), "<td>",
        absl::StrFormat("%.4g to %.4g, by %s", node.low, node.high, node.range_method), "</tr>\n");
  }
  return HtmlTable(
      "Layers",
      absl::StrCat("<th>layer<th>operator<th>precision<th>exact, us",
                   has_bf16 ? "<th>bf16, us<th>l2 alone" : "", "<th>int8, us<th>l2 alone",
                   has_rows ? "<th>row" : "", "<th>why<th>reads<th>range"),
      rows, " class=facts");
}

// "blue square exact, red square int8": what the colours of the series with points stand for.
std::string Legend(const std::vector<ChartSeries>& series) {
  std::string text;
  for (const ChartSeries& one : series) {
    if (one.points.empty()) continue;
    absl::StrAppend(&text, text.empty() ? "" : ", ",
                    "<span class=key style=\"background:", ChartColor(one.color), "\"></span>",
                    one.name);
  }
  return text;
}

constexpr char kWords[] = R"(<h2>What the words mean</h2><ul>
<li>exact: the model as it was, in numbers of 32 bits; tuned: the same model with the precisions
below. int8: its products are of 8-bit integers, bf16: of 16-bit floats.</li>
<li>held out: on inputs that were not used for choosing, which is what to expect of new ones;
chosen on: on those that were.</li>
<li>top1_changed: the share of the inputs for which another class has the largest output than in the
exact model, right or wrong. l2: how long the difference of the outputs is against the output
itself: 1e-2 is one hundredth. psnr: the same in decibels, where more is better.</li>
<li>l2 alone: if no other layer is less exact. Range: the numbers that the integers of a layer's
input stand for.</li>
</ul>
)";

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
  return HtmlFigure(
      absl::StrCat("Each layer: the error that it causes alone (l2) against the time that it "
                   "saves, as it was chosen, or by int8 where it stays exact: ",
                   Legend({int8, exact, bf16})),
      LineChart({.label = "us saved"}, {}, {int8, exact, bf16}));
}

// The error of what was tried, against its time.
std::string CurveFigure(const TuningReport& report) {
  const ErrorMeasure measure = report.budget.measure();
  const double unit = IsOfAnswers(measure) ? 100 : 1;
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
  const absl::string_view of_measure = measure == ErrorMeasure::kAccuracyDrop ? "accuracy lost, %"
                                       : measure == ErrorMeasure::kTop1Changed
                                           ? "answers changed, %"
                                       : measure == ErrorMeasure::kPsnr ? "psnr, dB"
                                                                        : "l2";
  return HtmlFigure(
      absl::StrCat("All that was tried: the error (", of_measure,
                   ") against the sum of its layers' times: ", Legend({tried, chosen, limit})),
      LineChart({.label = "ms"}, {}, {tried, best, limit, chosen}));
}

}  // namespace

std::string TuningHtml(const TuningReport& report) {
  return HtmlPage(
      absl::StrCat("Tuning of ", report.model),
      absl::StrCat("<p>", HtmlText(Headline(report)), "</p>\n", FactTable(report),
                   HtmlNotes(TuningNotes(report)), ChangedAnswersTable(report),
                   "<div class=charts>\n", ErrorFigure(report.result), CurveFigure(report),
                   "</div>\n", LayerTable(report.result), kWords, HtmlSettings(report.settings),
                   "<footer>tilewire tune. Errors of the result are of examples that "
                   "were not used for choosing; times are of this machine.</footer>"));
}

}  // namespace tilewire::client
