// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/tuning_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

using nlohmann::json;

constexpr char kMadeUpNote[] =
    "the inputs were made up: ranges and errors say little about real ones; give --images or "
    "--array";

int64_t CountOf(const TuningResult& result, TunedPrecision precision) {
  return absl::c_count_if(result.nodes,
                          [=](const TunedNode& node) { return node.precision == precision; });
}

int64_t MeasuredRows(const TuningResult& result) {
  return absl::c_count_if(result.nodes, [](const TunedNode& node) { return !node.row.empty(); });
}

// A line for each layer whose row is one that was measured.
std::string RowTable(const TuningResult& result) {
  if (MeasuredRows(result) == 0) return "";
  std::string text = absl::StrFormat("\n%9s  %9s  %-36s  layer\n", "before us", "us", "row");
  for (const TunedNode& node : result.nodes) {
    if (node.row.empty()) continue;
    absl::StrAppendFormat(
        &text, "%9.1f  %9.1f  %-36s  %s\n", absl::ToDoubleMicroseconds(node.row_before),
        absl::ToDoubleMicroseconds(node.row_after), node.row, ShownText(node.node));
  }
  return text;
}

std::string WrittenText(const TuningReport& report) {
  return ShownText(absl::StrJoin(report.written, " and "));
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
  std::string counts = absl::StrFormat("%d of %d layers int8",
                                       CountOf(result, TunedPrecision::kInt8), result.nodes.size());
  if (const int64_t bf16 = CountOf(result, TunedPrecision::kBf16); bf16 > 0)
    absl::StrAppend(&counts, ", ", bf16, " bf16");
  if (const int64_t rows = MeasuredRows(result); rows > 0)
    absl::StrAppend(&counts, ", ", CountText(rows, "row"), " by measurement");
  const std::string model = ShownText(report.model);
  if (!report.written.empty())
    return absl::StrCat(model, ": ", counts, ", written to ", WrittenText(report), "\n");
  if (result.keeps_budget) return absl::StrCat(model, ": ", counts, ", not written\n");
  return absl::StrCat(model, ": nothing was found that keeps ", ShownText(report.budget.ToString()),
                      "; nothing is written\n");
}

std::string ErrorCell(double error) { return error < 0 ? "-" : absl::StrFormat("%.1e", error); }

// With columns for bf16 where any layer was tried so.
std::string NodeTable(const TuningResult& result) {
  const bool has_bf16 =
      absl::c_any_of(result.nodes, [](const TunedNode& node) { return node.bf16_alone >= 0; });
  const auto row = [&](absl::string_view precision, absl::string_view exact, absl::string_view bf16,
                       absl::string_view bf16_error, absl::string_view int8,
                       absl::string_view error, absl::string_view rest) {
    const std::string of_bf16 =
        has_bf16 ? absl::StrFormat("%9s  %8s  ", bf16, bf16_error) : std::string();
    return absl::StrFormat("%-9s  %9s  %s%9s  %8s  %s\n", precision, exact, of_bf16, int8, error,
                           rest);
  };
  std::string text = row("precision", "exact us", "bf16 us", "l2 alone", "int8 us", "l2 alone",
                         absl::StrFormat("%-10s  layer", "range by"));
  for (const TunedNode& node : result.nodes) {
    absl::StrAppend(
        &text,
        row(NameOf(node.precision), TimeCell(node.exact_time), TimeCell(node.bf16_time),
            ErrorCell(node.bf16_alone), TimeCell(node.int8_time), ErrorCell(node.error_alone),
            absl::StrFormat("%-10s  %s %s", node.range_method, node.op, ShownText(node.node))));
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
          {"precision", std::string(NameOf(node.precision))},
          {"reason", node.reason},
          {"row", node.row},
          {"input", node.input},
          {"range", {node.low, node.high}},
          {"range_method", node.range_method},
          {"l2_alone", node.error_alone < 0 ? json(nullptr) : json(node.error_alone)},
          {"bf16_l2_alone", node.bf16_alone < 0 ? json(nullptr) : json(node.bf16_alone)},
          {"exact_us", absl::ToDoubleMicroseconds(node.exact_time)},
          {"bf16_us", absl::ToDoubleMicroseconds(node.bf16_time)},
          {"int8_us", absl::ToDoubleMicroseconds(node.int8_time)}};
}

json JsonOf(const TriedPoint& point) {
  return {{"error", std::isfinite(point.error) ? json(point.error) : json(nullptr)},
          {"estimated_us", absl::ToDoubleMicroseconds(point.estimate)},
          {"chosen", point.is_chosen}};
}

}  // namespace

std::string L2Text(const TuningResult& result) {
  const std::string measured = absl::StrFormat("%.2e", result.chosen_l2);
  // Without errors of single layers, nothing was predicted.
  if (result.predicted_l2 == 0) return measured;
  return absl::StrCat(measured, absl::StrFormat(", predicted %.2e", result.predicted_l2));
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
  if (result.keeps_budget && result.rows_tried > 0 && MeasuredRows(result) == 0) {
    notes.push_back(absl::StrCat("of ", CountText(result.rows_tried, "row"),
                                 " that were tried, none is clearly faster than those of the "
                                 "estimates"));
  }
  if (result.keeps_budget && result.tuned_time >= result.exact_time)
    notes.push_back("it is not faster than the exact model on this machine; its file is smaller");
  if (report.has_qdq && CountOf(result, TunedPrecision::kBf16) > 0) {
    notes.push_back(
        "ONNX has no word for products of bf16: in the QDQ file these layers are exact; the tuning "
        "has them");
  }
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
  return absl::StrCat(text, "\n", NodeTable(result), RowTable(result));
}

std::string TuningJson(const TuningReport& report) {
  const TuningResult& result = report.result;
  json settings = json::object(), nodes = json::array(), curve = json::array();
  for (const auto& [name, value] : report.settings) settings[name] = value;
  for (const TunedNode& node : result.nodes) nodes.push_back(JsonOf(node));
  for (const TriedPoint& point : result.curve) curve.push_back(JsonOf(point));
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
                       {"curve", curve},
                       {"nodes", nodes}};
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tilewire::client
