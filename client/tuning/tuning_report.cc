// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/tuning_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

using nlohmann::json;

constexpr char kMadeUpNote[] =
    "the inputs were made up: ranges and errors say little about real ones; give --images or "
    "--array";

int64_t CountInt8(const TuningResult& result) {
  return absl::c_count_if(
      result.nodes, [](const TunedNode& node) { return node.precision == TunedPrecision::kInt8; });
}

std::string MillisecondsText(absl::Duration time) {
  return absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(time));
}

double Speedup(const TuningResult& result) {
  return absl::FDivDuration(result.exact_time, result.tuned_time);
}

// "120.5"; "-" where it was not measured.
std::string TimeCell(absl::Duration time) {
  return time == absl::ZeroDuration() ? "-"
                                      : absl::StrFormat("%.1f", absl::ToDoubleMicroseconds(time));
}

std::string Headline(const TuningReport& report) {
  const TuningResult& result = report.result;
  const std::string counts =
      absl::StrFormat("%d of %d layers int8", CountInt8(result), result.nodes.size());
  const std::string model = ShownText(report.model);
  if (!report.written.empty())
    return absl::StrCat(model, ": ", counts, ", written to ", ShownText(report.written), "\n");
  if (result.keeps_budget) return absl::StrCat(model, ": ", counts, ", not written\n");
  return absl::StrCat(model, ": nothing was found that keeps ", ShownText(report.budget.ToString()),
                      "; nothing is written\n");
}

std::string NodeTable(const TuningResult& result) {
  std::string text = absl::StrFormat("%-9s  %9s  %9s  %8s  %-10s  %s\n", "precision", "exact us",
                                     "int8 us", "l2 alone", "range by", "layer");
  for (const TunedNode& node : result.nodes) {
    absl::StrAppendFormat(&text, "%-9s  %9s  %9s  %8s  %-10s  %s %s\n",
                          node.precision == TunedPrecision::kInt8 ? "int8" : "exact",
                          TimeCell(node.exact_time), TimeCell(node.int8_time),
                          node.error_alone < 0 ? "-" : absl::StrFormat("%.1e", node.error_alone),
                          node.range_method, node.op, ShownText(node.node));
  }
  return text;
}

json JsonOf(const MeasuredError& error) {
  // JSON has no infinity, which stands for no difference in dB.
  json value = std::isfinite(error.value) ? json(error.value) : json(nullptr);
  json object = {{"value", value}, {"examples", error.examples}};
  if (error.interval) object["interval"] = {error.interval->low, error.interval->high};
  return object;
}

json JsonOf(const TunedNode& node) {
  return {{"node", node.node},
          {"op", node.op},
          {"precision", node.precision == TunedPrecision::kInt8 ? "int8" : "exact"},
          {"reason", node.reason},
          {"input", node.input},
          {"range", {node.low, node.high}},
          {"range_method", node.range_method},
          {"l2_alone", node.error_alone < 0 ? json(nullptr) : json(node.error_alone)},
          {"exact_us", absl::ToDoubleMicroseconds(node.exact_time)},
          {"int8_us", absl::ToDoubleMicroseconds(node.int8_time)}};
}

}  // namespace

std::string L2Text(const TuningResult& result) {
  const std::string measured = absl::StrFormat("%.2e", result.chosen_l2);
  // Without errors of single layers, nothing was predicted.
  if (result.predicted_l2 == 0) return measured;
  return absl::StrCat(measured, absl::StrFormat(", predicted %.2e", result.predicted_l2));
}

std::string MeasuredText(ErrorMeasure measure, const MeasuredError& error) {
  std::string text =
      absl::StrCat(ErrorText(measure, error.value), " of ", CountText(error.examples, "example"));
  if (error.interval) {
    absl::StrAppend(&text, ", between ", ErrorText(measure, error.interval->low), " and ",
                    ErrorText(measure, error.interval->high));
  }
  return text;
}

std::vector<std::string> TuningNotes(const TuningReport& report) {
  const TuningResult& result = report.result;
  std::vector<std::string> notes;
  if (report.is_made_up) notes.push_back(kMadeUpNote);
  if (result.held_out.interval && result.keeps_budget &&
      !report.budget.Allows(result.held_out.interval->high)) {
    notes.push_back(absl::StrFormat(
        "%s cannot show more: with a confidence of 95 %%, up to %s may change; more examples tell "
        "more",
        CountText(result.held_out.examples, "held-out example"),
        ErrorText(report.budget.measure(), result.held_out.interval->high)));
  }
  if (result.keeps_budget && result.tuned_time >= result.exact_time)
    notes.push_back("int8 is not faster than the exact model on this machine; its file is smaller");
  if (result.is_out_of_time)
    notes.push_back("the time ended before all was tried; --time gives more");
  return notes;
}

std::string TuningText(const TuningReport& report) {
  const TuningResult& result = report.result;
  const ErrorMeasure measure = report.budget.measure();
  std::string text = Headline(report);
  if (result.held_out.examples > 0) {
    const absl::string_view nearest = result.keeps_budget ? "" : "the nearest: ";
    absl::StrAppend(&text, "budget     ", ShownText(report.budget.ToString()), "\n", "held out   ",
                    nearest, MeasuredText(measure, result.held_out), "\n", "chosen on  ", nearest,
                    MeasuredText(measure, result.chosen), "\n");
    absl::StrAppend(&text, "l2         ", L2Text(result), "\n");
    absl::StrAppendFormat(&text, "time       %s exact, %s tuned: %.2fx\n",
                          MillisecondsText(result.exact_time), MillisecondsText(result.tuned_time),
                          Speedup(result));
    absl::StrAppend(&text, "file       ", BytesText(result.exact_bytes), " exact, ",
                    BytesText(result.tuned_bytes), " tuned\n");
  }
  for (const std::string& note : TuningNotes(report)) absl::StrAppend(&text, "note: ", note, "\n");
  return absl::StrCat(text, "\n", NodeTable(result));
}

std::string TuningJson(const TuningReport& report) {
  const TuningResult& result = report.result;
  json settings = json::object(), nodes = json::array();
  for (const auto& [name, value] : report.settings) settings[name] = value;
  for (const TunedNode& node : result.nodes) nodes.push_back(JsonOf(node));
  const json object = {{"model", report.model},
                       {"written", report.written},
                       {"settings", settings},
                       {"budget", report.budget.ToString()},
                       {"limit", report.budget.limit()},
                       {"keeps_budget", result.keeps_budget},
                       {"made_up", report.is_made_up},
                       {"held_out", JsonOf(result.held_out)},
                       {"chosen_on", JsonOf(result.chosen)},
                       {"l2", result.chosen_l2},
                       {"predicted_l2", result.predicted_l2},
                       {"exact_ms", absl::ToDoubleMilliseconds(result.exact_time)},
                       {"tuned_ms", absl::ToDoubleMilliseconds(result.tuned_time)},
                       {"exact_bytes", result.exact_bytes},
                       {"tuned_bytes", result.tuned_bytes},
                       {"tried", result.tried},
                       {"stopped", result.is_stopped},
                       {"out_of_time", result.is_out_of_time},
                       {"notes", TuningNotes(report)},
                       {"nodes", nodes}};
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tilewire::client
