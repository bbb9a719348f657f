// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/tuning_report.h"

#include <cmath>
#include <iterator>
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

std::string CountsText(const TuningReport& report) {
  const TuningResult& result = report.result;
  std::string counts = absl::StrFormat("%d of %d layers int8",
                                       CountOf(result, TunedPrecision::kInt8), result.nodes.size());
  if (const int64_t bf16 = CountOf(result, TunedPrecision::kBf16); bf16 > 0)
    absl::StrAppend(&counts, ", ", bf16, " bf16");
  if (const int64_t rows = MeasuredRows(result); rows > 0)
    absl::StrAppend(&counts, ", ", CountText(rows, "row"), " by measurement");
  if (report.is_made_up) absl::StrAppend(&counts, ", by inputs that are MADE UP");
  return counts;
}

std::string ErrorCell(double error) { return error < 0 ? "-" : absl::StrFormat("%.1e", error); }

// Whether single layers were measured before the choice ended.
bool HasFigures(const TuningResult& result) {
  return absl::c_any_of(result.nodes, [](const TunedNode& node) {
    return node.exact_time > absl::ZeroDuration() || node.error_alone >= 0 || node.bf16_alone >= 0;
  });
}

// With columns for bf16 where any layer was tried so.
std::string NodeTable(const TuningResult& result) {
  if (!result.is_found() && !HasFigures(result)) return "";
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
    // Why not int8, where that would be faster.
    const bool asks = result.is_found() && node.precision != TunedPrecision::kInt8;
    if (asks && !node.reason.empty())
      absl::StrAppend(&text, "           ", ShownText(node.reason), "\n");
  }
  return text;
}

std::string PercentText(int64_t part, int64_t whole) {
  return absl::StrFormat("%.2f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

// "between 0.04 % and 0.95 %"
std::string BetweenText(const ShareInterval& interval) {
  return absl::StrFormat("between %.2f %% and %.2f %%", 100 * interval.low, 100 * interval.high);
}

std::string AnswersText(const TuningResult& result) {
  const MeasuredError& share = *result.changed_share;
  std::string text = absl::StrCat(result.changed.size(), " of ", share.examples,
                                  " changed: ", ErrorText(ErrorMeasure::kTop1Changed, share.value));
  if (share.interval) {
    absl::StrAppend(&text, "; of all such inputs, with a confidence of 95 %, ",
                    BetweenText(*share.interval));
  }
  return text;
}

std::string AccuracyText(const Accuracy& accuracy) {
  return absl::StrCat(PercentText(accuracy.exact_right, accuracy.examples), " exact (",
                      BetweenText(accuracy.exact_interval), "), ",
                      PercentText(accuracy.tuned_right, accuracy.examples), " tuned (",
                      BetweenText(accuracy.tuned_interval), "), of ", accuracy.examples,
                      " held out");
}

std::string MemoryText(const TuningReport& report) {
  const ModelMemory &exact = report.result.exact_memory, &tuned = report.result.tuned_memory;
  // A server keeps the tuned file beside what it made of it.
  const int64_t kept = report.has_tuning ? report.result.tuned_bytes : 0;
  return absl::StrCat(BytesText(exact.held), " exact, ", BytesText(tuned.held + kept),
                      " tuned; for each run ", BytesText(exact.activations + exact.scratchpad),
                      " and ", BytesText(tuned.activations + tuned.scratchpad), " more");
}

// Whole models had the last word, and it was for the exact one.
bool IsExactTheFastest(const TuningResult& result) {
  return result.is_found() && absl::c_any_of(result.finalists, [](const Finalist& one) {
           return one.is_chosen && one.name == "exact";
         });
}

// Other processes may have made it so: times of a busy machine differ by more than is gained.
std::string SlowerText(const TuningReport& report) {
  const TuningResult& result = report.result;
  std::string text = absl::StrFormat("it is not faster than the exact model on this machine: %.2fx",
                                     Speedup(result));
  if (report.has_qdq && result.tuned_bytes < result.exact_bytes)
    absl::StrAppend(&text, "; its file is smaller");
  if (report.has_tuning)
    absl::StrAppend(&text, "; without tilewire.tuning the model is served as it was");
  return absl::StrCat(text, "; tune again while nothing else runs, if something did");
}

std::string TimeText(const TuningReport& report) {
  const TuningResult& result = report.result;
  std::string text =
      absl::StrFormat("%s exact, %s tuned: %.2fx", MillisecondsText(result.exact_time),
                      MillisecondsText(result.tuned_time), Speedup(result));
  if (report.goal) absl::StrAppend(&text, ", ", *report.goal, "x wanted");
  return text;
}

std::string BudgetText(const TuningReport& report) {
  return report.has_budget
             ? report.budget.ToString()
             : absl::StrCat("none was given: ", report.budget.ToString(), ", and the goal");
}

// "exact 0.113 ms, all int8 0.042 ms (chosen)"
std::string FinalsText(const TuningResult& result) {
  return absl::StrJoin(result.finalists, ", ", [](std::string* text, const Finalist& one) {
    absl::StrAppend(text, one.name, " ", MillisecondsText(one.time),
                    one.is_chosen ? " (chosen)"
                    : one.is_sure ? ""
                                  : " (not sure to keep the budget)");
  });
}

std::string ClassText(const TuningReport& report, int64_t index) {
  if (index < 0) return "no class";
  return index < static_cast<int64_t>(report.classes.size()) ? report.classes[index]
                                                             : absl::StrCat(index);
}

std::string ChangedTable(const TuningReport& report) {
  const std::vector<ChangedAnswer>& changed = report.result.changed;
  if (changed.empty()) return "";
  std::string text =
      "\nanswers that changed, with their probabilities: exact -> tuned, and the input\n";
  for (size_t i = 0; i < changed.size() && i < kMostChangedInText; ++i) {
    const ChangedWords words = WordsOf(report, changed[i]);
    absl::StrAppend(&text, "  ", ShownText(words.exact), " -> ", ShownText(words.tuned), "  ",
                    ShownText(words.example),
                    words.label.empty() ? "" : absl::StrCat(", right: ", ShownText(words.label)),
                    "\n");
  }
  if (changed.size() > kMostChangedInText) {
    absl::StrAppend(&text, "  and ", changed.size() - kMostChangedInText,
                    " more, which --html and --json have\n");
  }
  return text;
}

std::string CurveTable(const TuningReport& report) {
  const std::vector<TriedPoint> points = BestPoints(report);
  if (points.empty()) return "";
  std::string text = "\nthe best of what was tried: the sum of its layers' times, and its error\n";
  for (const TriedPoint& point : points) {
    absl::StrAppendFormat(&text, "%13s  %s%s\n", MillisecondsText(point.estimate),
                          ErrorText(report.budget.measure(), point.error),
                          point.is_chosen ? "  <- chosen" : "");
  }
  return text;
}

json JsonOf(const ModelMemory& memory) {
  return {{"held_bytes", memory.held},
          {"activations_bytes", memory.activations},
          {"scratchpad_bytes", memory.scratchpad}};
}

json JsonOf(const Accuracy& accuracy) {
  return {{"examples", accuracy.examples},
          {"exact_right", accuracy.exact_right},
          {"tuned_right", accuracy.tuned_right},
          {"exact_interval", {accuracy.exact_interval.low, accuracy.exact_interval.high}},
          {"tuned_interval", {accuracy.tuned_interval.low, accuracy.tuned_interval.high}}};
}

json JsonOf(const TuningReport& report, const ChangedAnswer& changed) {
  const ChangedWords words = WordsOf(report, changed);
  return {{"example", changed.example},
          {"input", words.example},
          {"exact_class", changed.exact_class},
          {"tuned_class", changed.tuned_class},
          {"exact", words.exact},
          {"tuned", words.tuned},
          {"exact_probability", changed.exact_probability},
          {"tuned_probability", changed.tuned_probability},
          {"label", changed.label < 0 ? json(nullptr) : json(changed.label)}};
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

json JsonOf(const Finalist& one) {
  return {{"name", one.name},
          {"ms", absl::ToDoubleMilliseconds(one.time)},
          {"error", std::isfinite(one.error) ? json(one.error) : json(nullptr)},
          {"l2", one.l2},
          {"sure", one.is_sure},
          {"chosen", one.is_chosen}};
}

json JsonOf(const TriedPoint& point) {
  return {{"error", std::isfinite(point.error) ? json(point.error) : json(nullptr)},
          {"estimated_us", absl::ToDoubleMicroseconds(point.estimate)},
          {"chosen", point.is_chosen}};
}

}  // namespace

std::string WantedText(const TuningReport& report) {
  const std::string goal =
      report.goal ? absl::StrCat("is ", *report.goal, "x as fast as the exact model") : "";
  if (!report.has_budget) return goal;
  const std::string budget = absl::StrCat("keeps ", report.budget.ToString());
  return goal.empty() ? budget : absl::StrCat(budget, " and ", goal);
}

std::string Headline(const TuningReport& report) {
  if (!report.written.empty()) {
    return absl::StrCat(CountsText(report), ", written to ",
                        absl::StrJoin(report.written, " and "));
  }
  if (report.result.is_found()) return absl::StrCat(CountsText(report), ", not written");
  return absl::StrCat("nothing was found that ", WantedText(report), "; nothing is written");
}

bool IsSlower(const TuningReport& report) {
  return report.result.is_found() && !IsExactTheFastest(report.result) &&
         report.result.tuned_time >= report.result.exact_time;
}

std::vector<std::pair<std::string, std::string>> TuningFigures(const TuningReport& report) {
  const TuningResult& result = report.result;
  const ErrorMeasure measure = report.budget.measure();
  if (result.held_out.examples == 0) return {};
  const std::string nearest = result.is_found() ? "" : "the nearest: ";
  std::vector<std::pair<std::string, std::string>> figures = {
      {"budget", BudgetText(report)},
      {"held out", absl::StrCat(nearest, MeasuredText(measure, result.held_out))},
      {"chosen on", absl::StrCat(nearest, MeasuredText(measure, result.chosen))}};
  if (result.changed_share) figures.emplace_back("answers", AnswersText(result));
  if (result.accuracy) figures.emplace_back("accuracy", AccuracyText(*result.accuracy));
  figures.emplace_back("l2", L2Text(result));
  figures.emplace_back("time", TimeText(report));
  if (!result.finalists.empty()) figures.emplace_back("in turns", FinalsText(result));
  if (result.exact_memory.held > 0) figures.emplace_back("memory", MemoryText(report));
  figures.emplace_back("file", absl::StrCat(BytesText(result.exact_bytes), " exact, ",
                                            BytesText(result.tuned_bytes), " tuned"));
  return figures;
}

ChangedWords WordsOf(const TuningReport& report, const ChangedAnswer& changed) {
  const auto with_probability = [&](int64_t index, double probability) {
    const std::string text = probability < 0.01 ? absl::StrFormat("%.1g", probability)
                                                : absl::StrFormat("%.2f", probability);
    return absl::StrCat(ClassText(report, index), " ", text);
  };
  const auto picture = report.pictures.find(changed.example);
  ChangedWords words{picture == report.pictures.end() ? absl::StrCat("input ", changed.example)
                                                      : picture->second.file,
                     with_probability(changed.exact_class, changed.exact_probability),
                     with_probability(changed.tuned_class, changed.tuned_probability), ""};
  if (changed.label >= 0) words.label = ClassText(report, changed.label);
  return words;
}

std::vector<TriedPoint> BestPoints(const TuningReport& report) {
  std::vector<TriedPoint> points = report.result.curve, best;
  absl::c_stable_sort(
      points, [](const TriedPoint& a, const TriedPoint& b) { return a.estimate < b.estimate; });
  for (const TriedPoint& point : points) {
    const bool is_nearer = best.empty() || report.budget.IsWorse(best.back().error, point.error);
    if (is_nearer || point.is_chosen) best.push_back(point);
  }
  return best;
}

std::string L2Text(const TuningResult& result) {
  const std::string measured = absl::StrFormat("%.2e where it was chosen", result.chosen_l2);
  // Without errors of single layers, nothing was predicted.
  if (result.predicted_l2 == 0) return measured;
  return absl::StrCat(measured, absl::StrFormat(", %.2e predicted by errors of single layers",
                                                result.predicted_l2));
}

namespace {

// About what the held-out examples say, and how surely.
std::vector<std::string> HeldOutNotes(const TuningReport& report) {
  const TuningResult& result = report.result;
  std::vector<std::string> notes;
  if (result.bolder_held_out) {
    notes.push_back(absl::StrCat(
        "a faster assignment kept the budget on the examples of the choice, and missed it on the "
        "held-out ones, with ",
        ErrorText(report.budget.measure(), result.bolder_held_out->value)));
  }
  if (result.first_held_out) {
    notes.push_back(absl::StrCat(
        "a first choice missed on the held-out examples, with ",
        ErrorText(report.budget.measure(), result.first_held_out->value),
        result.is_found() ? "; this second one keeps to half the budget, and was judged by the "
                            "same examples, so that others may show a little more"
                          : ", and a second one, which kept to half the budget, did not help: the "
                            "examples of the choice may be unlike the others, or too few"));
  }
  if (result.held_out.interval && result.keeps_budget &&
      !report.budget.Allows(result.held_out.interval->high)) {
    const ErrorMeasure measure = report.budget.measure();
    notes.push_back(absl::StrFormat(
        "%s cannot show more: with a confidence of 95 %%, up to %s may %s; more examples tell more",
        CountText(result.held_out.examples, "held-out example"),
        ErrorText(measure, result.held_out.interval->high),
        measure == ErrorMeasure::kAccuracyDrop ? "be lost" : "change"));
  }
  return notes;
}

}  // namespace

std::vector<std::string> TuningNotes(const TuningReport& report) {
  const TuningResult& result = report.result;
  std::vector<std::string> notes;
  if (report.is_made_up) notes.push_back(kMadeUpNote);
  absl::c_move(HeldOutNotes(report), std::back_inserter(notes));
  if (result.keeps_budget && result.rows_tried > 0 && MeasuredRows(result) == 0) {
    notes.push_back(absl::StrCat("of ", CountText(result.rows_tried, "row"),
                                 " that were tried, none is clearly faster than those of the "
                                 "estimates"));
  }
  if (IsExactTheFastest(result)) {
    notes.push_back(
        "nothing that keeps the budget is faster than the exact model on this machine: all layers "
        "stay exact; --precisions=int8 makes the file smaller all the same");
  } else if (IsSlower(report)) {
    notes.push_back(SlowerText(report));
  }
  if (report.has_qdq && CountOf(result, TunedPrecision::kBf16) > 0) {
    notes.push_back(
        "ONNX has no word for products of bf16: in the QDQ file these layers are exact; the tuning "
        "has them");
  }
  if (result.left_out > 0) {
    notes.push_back(absl::StrCat("the time had no room for ", CountText(result.left_out, "example"),
                                 ", which were left out; --time gives more"));
  }
  if (result.is_out_of_time)
    notes.push_back("the time ended before all was tried; --time gives more");
  return notes;
}

std::string TuningText(const TuningReport& report) {
  const TuningResult& result = report.result;
  std::string text = absl::StrCat(ShownText(report.model), ": ", ShownText(Headline(report)), "\n");
  for (const auto& [name, figure] : TuningFigures(report))
    absl::StrAppendFormat(&text, "%-9s  %s\n", name, ShownText(figure));
  for (const std::string& note : TuningNotes(report)) absl::StrAppend(&text, "note: ", note, "\n");
  const std::string nodes = NodeTable(result);
  return absl::StrCat(text, ChangedTable(report), CurveTable(report), nodes.empty() ? "" : "\n",
                      nodes, RowTable(result));
}

std::string TuningJson(const TuningReport& report) {
  const TuningResult& result = report.result;
  json settings = json::object(), nodes = json::array(), curve = json::array(),
       changed = json::array(), finalists = json::array();
  for (const auto& [name, value] : report.settings) settings[name] = value;
  for (const TunedNode& node : result.nodes) nodes.push_back(JsonOf(node));
  for (const TriedPoint& point : result.curve) curve.push_back(JsonOf(point));
  for (const Finalist& one : result.finalists) finalists.push_back(JsonOf(one));
  for (const ChangedAnswer& one : result.changed) changed.push_back(JsonOf(report, one));
  json object = {{"model", report.model},
                 {"written", report.written},
                 {"settings", settings},
                 {"budget", BudgetText(report)},
                 {"limit", report.budget.limit()},
                 {"keeps_budget", result.keeps_budget},
                 {"reaches_goal", result.reaches_goal},
                 {"made_up", report.is_made_up},
                 {"held_out", JsonOf(result.held_out)},
                 {"chosen_on", JsonOf(result.chosen)},
                 {"l2", result.chosen_l2},
                 {"predicted_l2", result.predicted_l2},
                 {"exact_ms", absl::ToDoubleMilliseconds(result.exact_time)},
                 {"tuned_ms", absl::ToDoubleMilliseconds(result.tuned_time)},
                 {"exact_memory", JsonOf(result.exact_memory)},
                 {"tuned_memory", JsonOf(result.tuned_memory)},
                 {"exact_bytes", result.exact_bytes},
                 {"tuned_bytes", result.tuned_bytes},
                 {"tried", result.tried},
                 {"stopped", result.is_stopped},
                 {"out_of_time", result.is_out_of_time},
                 {"left_out", result.left_out},
                 {"notes", TuningNotes(report)},
                 {"curve", curve},
                 {"in_turns", finalists},
                 {"changed", changed},
                 {"nodes", nodes}};
  if (report.goal) object["goal"] = *report.goal;
  if (!report.has_budget) object["has_budget"] = false;
  if (result.changed_share) object["top1_changed"] = JsonOf(*result.changed_share);
  if (result.bolder_held_out) object["bolder_held_out"] = JsonOf(*result.bolder_held_out);
  if (result.first_held_out) object["first_held_out"] = JsonOf(*result.first_held_out);
  if (result.accuracy) object["accuracy"] = JsonOf(*result.accuracy);
  return object.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
}

}  // namespace tilewire::client
