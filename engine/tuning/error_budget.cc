// SPDX-License-Identifier: Apache-2.0
#include "engine/error_budget.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr char kForms[] =
    "; a budget is top1_changed<=0.5%, accuracy_drop<=0.5%, l2<=1e-2 or psnr>=40, with the output "
    "in parentheses after the measure if it is not the first: l2(scores)<=1e-2";

constexpr double kZ = 1.959963984540054;  // 95 % of a normal distribution lie within so many

struct MeasureRow {
  ErrorMeasure measure;
  absl::string_view name, comparison;
  double most;  // that a limit may be
};
constexpr MeasureRow kMeasures[] = {
    {ErrorMeasure::kTop1Changed, "top1_changed", "<=", 1},
    {ErrorMeasure::kAccuracyDrop, "accuracy_drop", "<=", 1},
    {ErrorMeasure::kL2, "l2", "<=", 1},
    {ErrorMeasure::kPsnr, "psnr", ">=", 200},
};

const MeasureRow& RowOf(ErrorMeasure measure) { return kMeasures[static_cast<int>(measure)]; }

absl::StatusOr<double> ParseLimit(const MeasureRow& row, absl::string_view text) {
  absl::string_view digits = text;
  const bool is_percentage = IsOfAnswers(row.measure) && absl::ConsumeSuffix(&digits, "%");
  double limit = 0;
  if (!absl::SimpleAtod(digits, &limit))
    return InvalidArgument("'", text, "' is not a number", kForms);
  if (is_percentage) limit /= 100;
  if (IsOfAnswers(row.measure) && !is_percentage && limit == 1) {
    return InvalidArgument("'", text,
                           "' is all answers, which any model keeps: 1% is a hundredth of "
                           "them, 100% all");
  }
  if (limit >= 0 && limit <= row.most) return limit;
  return InvalidArgument("'", text, "' is out of range: the limit of ", row.name, " is from 0 to ",
                         row.most, IsOfAnswers(row.measure) ? " or 100%" : "");
}

}  // namespace

absl::string_view NameOf(ErrorMeasure measure) { return RowOf(measure).name; }

bool IsOfAnswers(ErrorMeasure measure) {
  return measure == ErrorMeasure::kTop1Changed || measure == ErrorMeasure::kAccuracyDrop;
}

std::string ErrorText(ErrorMeasure measure, double value) {
  switch (measure) {
    case ErrorMeasure::kTop1Changed:
    case ErrorMeasure::kAccuracyDrop:
      return absl::StrFormat("%.2f %%", 100 * value);
    case ErrorMeasure::kL2:
      return absl::StrFormat("%.2e", value);
    default:
      return std::isinf(value) ? "no difference" : absl::StrFormat("%.1f dB", value);
  }
}

absl::StatusOr<ErrorBudget> ErrorBudget::Parse(absl::string_view text) {
  const absl::string_view all = text = absl::StripAsciiWhitespace(text);
  const size_t sign = text.find_last_of("<>");
  if (sign == absl::string_view::npos || sign + 1 >= text.size() || text[sign + 1] != '=')
    return InvalidArgument("'", all, "' compares nothing by <= or >=", kForms);
  absl::string_view name = absl::StripAsciiWhitespace(text.substr(0, sign));
  absl::string_view output;
  if (absl::ConsumeSuffix(&name, ")")) {
    const size_t open = name.find('(');
    if (open == absl::string_view::npos || open + 1 == name.size())
      return InvalidArgument("'", all, "' names no output in its parentheses", kForms);
    output = name.substr(open + 1);
    name = name.substr(0, open);
  }
  for (const MeasureRow& row : kMeasures) {
    if (row.name != name) continue;
    if (text.substr(sign, 2) != row.comparison)
      return InvalidArgument("'", all, "': ", name, " is compared by ", row.comparison);
    ABSL_ASSIGN_OR_RETURN(const double limit,
                          ParseLimit(row, absl::StripAsciiWhitespace(text.substr(sign + 2))));
    return ErrorBudget(row.measure, limit, std::string(output));
  }
  return InvalidArgument("'", name, "' is not a measure", kForms);
}

bool ErrorBudget::Allows(double value) const {
  return measure_ == ErrorMeasure::kPsnr ? value >= limit_ : value <= limit_;
}

bool ErrorBudget::IsWorse(double value, double other) const {
  return measure_ == ErrorMeasure::kPsnr ? value < other : value > other;
}

ErrorBudget ErrorBudget::Part(double part) const {
  const double limit =
      measure_ == ErrorMeasure::kPsnr ? limit_ - 20 * std::log10(part) : limit_ * part;
  return ErrorBudget(measure_, limit, output_);
}

std::string ErrorBudget::ToString() const {
  const MeasureRow& row = RowOf(measure_);
  const std::string limit =
      IsOfAnswers(measure_) ? absl::StrCat(100 * limit_, "%") : absl::StrCat(limit_);
  const std::string output = output_.empty() ? "" : absl::StrCat("(", output_, ")");
  return absl::StrCat(row.name, output, row.comparison, limit);
}

ShareInterval WilsonInterval(int64_t counted, int64_t total) {
  const double n = static_cast<double>(total), share = static_cast<double>(counted) / n;
  const double stretch = 1 + kZ * kZ / n;
  const double middle = (share + kZ * kZ / (2 * n)) / stretch;
  const double half = kZ / stretch * std::sqrt(share * (1 - share) / n + kZ * kZ / (4 * n * n));
  return {.low = counted == 0 ? 0 : middle - half, .high = counted == total ? 1 : middle + half};
}

// Wald's interval of a difference of paired shares, with half an answer more of each kind.
ShareInterval DropInterval(int64_t worse, int64_t better, int64_t total) {
  const double n = static_cast<double>(total) + 2;
  const double lost = (static_cast<double>(worse) + 0.5) / n;
  const double gained = (static_cast<double>(better) + 0.5) / n;
  const double drop = lost - gained;
  const double half = kZ * std::sqrt((lost + gained - drop * drop) / n);
  return {.low = std::max(drop - half, -1.0), .high = std::min(drop + half, 1.0)};
}

std::string MeasuredText(ErrorMeasure measure, const MeasuredError& error) {
  std::string text = absl::StrCat(ErrorText(measure, error.value), " of ", error.examples,
                                  error.examples == 1 ? " example" : " examples");
  if (error.interval) {
    absl::StrAppend(&text, ", between ", ErrorText(measure, error.interval->low), " and ",
                    ErrorText(measure, error.interval->high));
  }
  return text;
}

}  // namespace tilewire
