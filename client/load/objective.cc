// SPDX-License-Identifier: Apache-2.0
#include "client/load/objective.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

// "p99.9" is 99.9; nothing if it is not a percentile.
std::optional<double> PercentOf(absl::string_view quantity) {
  double percent = 0;
  if (quantity.empty() || quantity[0] != 'p') return std::nullopt;
  if (!absl::SimpleAtod(quantity.substr(1), &percent) || !(percent >= 0 && percent <= 100))
    return std::nullopt;
  return percent;
}

std::optional<absl::Duration> LatencyOf(const LoadReport& report, absl::string_view quantity) {
  if (quantity == "mean") return report.latencies.Mean();
  if (quantity == "max") return report.latencies.Percentile(100);
  if (const auto percent = PercentOf(quantity)) return report.latencies.Percentile(*percent);
  return std::nullopt;
}

std::optional<double> CountOf(const LoadReport& report, absl::string_view quantity) {
  if (quantity == "rate") return report.rate();
  if (quantity == "rows") return report.rate() * report.rows;
  if (quantity == "errors") return report.error_count();
  if (quantity == "refusals") return report.refusals;
  if (quantity == "mismatches") return report.mismatches;
  if (quantity == "unsent") return report.unsent;
  if (quantity == "error_share") {
    const double all = report.answered + report.error_count() + report.unsent;
    return all > 0 ? report.failed_count() / all : 1;
  }
  return std::nullopt;
}

bool Holds(double value, absl::string_view comparison, double bound) {
  if (comparison == "<") return value < bound;
  if (comparison == "<=") return value <= bound;
  if (comparison == ">") return value > bound;
  if (comparison == ">=") return value >= bound;
  return value == bound;
}

bool ParseBound(const std::string& quantity, absl::string_view text, double* bound) {
  if (LatencyOf(LoadReport(), quantity)) {
    absl::Duration duration;
    if (!absl::ParseDuration(text, &duration)) return false;
    *bound = absl::ToDoubleSeconds(duration);
  } else if (!absl::SimpleAtod(text, bound)) {
    return false;
  }
  return std::isfinite(*bound) && *bound >= 0;
}

absl::StatusOr<Condition> ParseCondition(absl::string_view text) {
  Condition condition;
  condition.text = std::string(text);
  const size_t at = text.find_first_of("<>=");
  if (at != absl::string_view::npos) {
    const size_t length = text.substr(at + 1, 1) == "=" ? 2 : 1;
    condition.quantity = std::string(text.substr(0, at));
    condition.comparison = std::string(text.substr(at, length));
    const bool known =
        LatencyOf(LoadReport(), condition.quantity) || CountOf(LoadReport(), condition.quantity);
    if (known && condition.comparison != "==" &&
        ParseBound(condition.quantity, text.substr(at + length), &condition.bound)) {
      return condition;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is not a condition such as p99<20ms, errors=0 or rate>=100; quantities are "
                   "p0 to p100, mean, max, rate, rows, errors, refusals, mismatches, unsent and "
                   "error_share"));
}

// Why the report has no such latency; empty if it has one.
std::string WhyUnknown(const LoadReport& report, absl::string_view quantity) {
  if (report.answered == 0) return "nothing was answered";
  const auto percent = PercentOf(quantity);
  if (!percent || report.latencies.Knows(*percent)) return "";
  return absl::StrCat("unknown, ", quantity, " needs ",
                      CountText(Latencies::FewestFor(*percent), "answer"), " and there were ",
                      report.latencies.count());
}

Verdict JudgeOne(const Condition& condition, const LoadReport& report) {
  if (const auto latency = LatencyOf(report, condition.quantity)) {
    std::string unknown = WhyUnknown(report, condition.quantity);
    if (!unknown.empty()) return {condition.text, std::move(unknown), false};
    return {condition.text, LatencyText(*latency),
            Holds(absl::ToDoubleSeconds(*latency), condition.comparison, condition.bound)};
  }
  const double count = CountOf(report, condition.quantity).value_or(0);
  return {condition.text, absl::StrCat(count), Holds(count, condition.comparison, condition.bound)};
}

}  // namespace

absl::StatusOr<Objective> Objective::Parse(absl::string_view text) {
  Objective objective;
  if (text.empty()) return objective;
  const std::string dense = absl::StrJoin(absl::StrSplit(text, ' ', absl::SkipEmpty()), "");
  for (absl::string_view part : absl::StrSplit(dense, ',')) {
    absl::StatusOr<Condition> condition = ParseCondition(part);
    if (!condition.ok()) return condition.status();
    objective.conditions_.push_back(*std::move(condition));
  }
  return objective;
}

std::vector<Verdict> Objective::Judge(const LoadReport& report) const {
  std::vector<Verdict> verdicts;
  for (const Condition& condition : conditions_) verdicts.push_back(JudgeOne(condition, report));
  return verdicts;
}

bool Objective::IsMet(const LoadReport& report) const {
  const std::vector<Verdict> verdicts = Judge(report);
  return std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& v) { return v.met; });
}

int64_t Objective::FewestAnswers() const {
  int64_t fewest = 1;
  for (const Condition& condition : conditions_) {
    if (const auto percent = PercentOf(condition.quantity))
      fewest = std::max(fewest, Latencies::FewestFor(*percent));
  }
  return fewest;
}

}  // namespace tilewire::client
