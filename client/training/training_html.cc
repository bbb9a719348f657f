// SPDX-License-Identifier: Apache-2.0
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/report/html_page.h"
#include "client/load/report/svg_chart.h"
#include "client/training/loss_curve.h"
#include "client/training/training_report.h"

namespace tilewire::client {
namespace {

constexpr int64_t kMostPoints = 400;

std::string LossFigure(const TrainingRecord& record) {
  const std::vector<ChartSeries> series = {
      {"trained on", 0, LineStyle::kSolid, TrainedLosses(record, kMostPoints)},
      {"held out", 1, LineStyle::kSolid, HeldOutLosses(record)}};
  return HtmlFigure(
      record.before ? "Loss: of what is trained on (blue) and held out (orange)" : "Loss",
      LineChart({.label = "epochs"}, {}, series));
}

std::string AccuracyFigure(const TrainingRecord& record) {
  ChartSeries series{"held out", 1, LineStyle::kSolid, {}};
  const auto add = [&](double epoch, const std::optional<HeldOut>& held_out) {
    if (held_out && held_out->judged > 0) series.points.emplace_back(epoch, held_out->accuracy());
  };
  add(0, record.before);
  for (const EpochFigures& epoch : record.epochs)
    add(static_cast<double>(epoch.epoch), epoch.held_out);
  if (series.points.empty()) return "";
  return HtmlFigure("Accuracy of what is held out", LineChart({.label = "epochs"}, {}, {series}));
}

std::string HeldOutCells(const std::optional<HeldOut>& held_out) {
  if (!held_out) return "<td><td>";
  return absl::StrCat("<td>", LossText(held_out->loss), "<td>",
                      held_out->judged > 0 ? absl::StrFormat("%.4f", held_out->accuracy()) : "");
}

std::string EpochTable(const TrainingRecord& record) {
  std::string rows;
  if (record.before) {
    absl::StrAppend(&rows, "<tr><td>before<td><td><td>", HeldOutCells(record.before), "</tr>\n");
  }
  for (const EpochFigures& epoch : record.epochs) {
    absl::StrAppendFormat(&rows, "<tr><td>%d<td>%s<td>%.4g<td>%d%s</tr>\n", epoch.epoch,
                          LossText(epoch.loss), epoch.rate, epoch.skipped,
                          HeldOutCells(epoch.held_out));
  }
  return HtmlTable("Epochs",
                   "<th>epoch<th>loss<th>learning rate<th>skipped<th>loss, held out<th>accuracy",
                   rows);
}

std::string ParameterTable(const TrainingReport& report) {
  std::string rows;
  for (const ParameterSpec& parameter : report.parameters) {
    absl::StrAppend(&rows, "<tr><td>", HtmlText(parameter.name), "<td>",
                    DimsToString(parameter.dims), "<td>", parameter.frozen ? "frozen" : "trained",
                    "</tr>\n");
  }
  return HtmlTable("Parameters", "<th>name<th>shape<th>", rows, " class=facts");
}

std::string ClassTable(const TrainingReport& report) {
  std::string rows;
  for (size_t i = 0; i < report.classes.size(); ++i)
    absl::StrAppend(&rows, "<tr><td>", i, "<td>", HtmlText(report.classes[i]), "</tr>\n");
  return rows.empty() ? "" : HtmlTable("Classes", "<th>class<th>folder", rows, " class=facts");
}

std::string Summary(const TrainingReport& report) {
  const char* end = report.record.is_stopped ? ", then stopped"
                    : report.failure.ok()    ? ""
                                             : ", then it failed";
  std::string summary = absl::StrFormat(
      "<p>%d updates%s; %s</p>\n", report.record.updates(), end,
      report.written.empty() ? "nothing was written"
                             : absl::StrCat("written to ", HtmlText(report.written)));
  for (const std::string& warning : TrainingWarnings(report.record))
    absl::StrAppend(&summary, "<p class=bad>", HtmlText(warning), "</p>\n");
  if (!report.failure.ok())
    absl::StrAppend(&summary, "<p class=bad>", HtmlText(report.failure.ToString()), "</p>\n");
  return summary;
}

}  // namespace

std::string TrainingHtml(const TrainingReport& report) {
  const TrainingRecord& record = report.record;
  return HtmlPage(
      absl::StrCat("Training of ", report.model),
      absl::StrCat(Summary(report), "<div class=charts>\n", LossFigure(record),
                   AccuracyFigure(record), "</div>\n", EpochTable(record), HtmlNotes(report.notes),
                   ClassTable(report), HtmlSettings(report.settings), ParameterTable(report),
                   "<footer>tilewire train. The loss of what is trained on is the mean over the "
                   "updates of a stretch, each with the parameters before it; that of what is "
                   "held out is of the parameters after an epoch.</footer>"));
}

}  // namespace tilewire::client
