// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/report_difference.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/load/latency_spans.h"

namespace tilewire::client {
namespace {

constexpr size_t kFewestForSpread = 3;

// A figure of a load, and what it was in parts of the load's time.
struct FigureOverTime {
  double value = 0;  // 0: not known
  std::vector<double> parts;

  // The standard error of the parts' mean, relative to it.
  std::optional<double> RelativeError() const {
    if (parts.size() < kFewestForSpread) return std::nullopt;
    const auto count = static_cast<double>(parts.size());
    double sum = 0, squares = 0;
    for (const double part : parts) sum += part;
    const double mean = sum / count;
    if (mean <= 0) return std::nullopt;
    for (const double part : parts) squares += (part - mean) * (part - mean);
    return std::sqrt(squares / (count - 1) / count) / mean;
  }
};

FigureOverTime RateOverTime(const LoadReport& report) {
  FigureOverTime rate{.value = report.rate()};
  for (const LoadWindow& window : report.windows) {
    // The last one may be short.
    if (window.length_s >= 1) rate.parts.push_back(static_cast<double>(window.answered));
  }
  return rate;
}

FigureOverTime LatencyOverTime(const LoadReport& report, double percent,
                               const std::vector<LatencySpan>& spans) {
  FigureOverTime latency;
  if (report.latencies.Knows(percent))
    latency.value = absl::ToDoubleSeconds(report.latencies.Percentile(percent));
  for (const LatencySpan& span : spans)
    latency.parts.push_back(absl::ToDoubleSeconds(span.latency));
  return latency;
}

std::optional<FigureDifference> DifferenceOf(const FigureOverTime& earlier,
                                             const FigureOverTime& later) {
  if (earlier.value <= 0 || later.value <= 0) return std::nullopt;
  const double ratio = later.value / earlier.value;
  FigureDifference difference{.percent = 100 * (ratio - 1)};
  const std::optional<double> before = earlier.RelativeError(), after = later.RelativeError();
  if (before.has_value() && after.has_value())
    difference.spread = 2 * 100 * ratio * std::hypot(*before, *after);
  return difference;
}

LoadDifference DifferenceOf(const LoadReport& earlier, const LoadReport& later) {
  return {.name = later.name,
          .rate = DifferenceOf(RateOverTime(earlier), RateOverTime(later)),
          .p50 = DifferenceOf(LatencyOverTime(earlier, 50, P50Spans(earlier)),
                              LatencyOverTime(later, 50, P50Spans(later))),
          .p99 = DifferenceOf(LatencyOverTime(earlier, 99, P99Spans(earlier)),
                              LatencyOverTime(later, 99, P99Spans(later)))};
}

}  // namespace

std::vector<LoadDifference> Differences(const std::vector<LoadReport>& earlier,
                                        const std::vector<LoadReport>& later) {
  if (earlier.size() == 1 && later.size() == 1) return {DifferenceOf(earlier[0], later[0])};
  std::vector<LoadDifference> differences;
  std::vector<bool> is_taken(earlier.size());
  for (const LoadReport& load : later) {
    for (size_t i = 0; i < earlier.size(); ++i) {
      if (is_taken[i] || earlier[i].name != load.name) continue;
      is_taken[i] = true;
      differences.push_back(DifferenceOf(earlier[i], load));
      break;
    }
  }
  return differences;
}

std::string DifferenceText(const std::optional<FigureDifference>& difference) {
  if (!difference.has_value()) return "-";
  // One digit after the point, but for large ones.
  const auto number = [](double value, bool has_sign) {
    const int digits = std::fabs(value) < 99.95 ? 1 : 0;
    return has_sign ? absl::StrFormat("%+.*f", digits, value)
                    : absl::StrFormat("%.*f", digits, value);
  };
  std::string text = absl::StrCat(number(difference->percent, true), " %");
  if (difference->spread.has_value())
    absl::StrAppend(&text, " ±", number(*difference->spread, false));
  return text;
}

std::string ComparisonOfFilesText(const LoadComparison& comparison) {
  if (comparison.loads.empty()) return "";
  size_t width = 0;
  for (const LoadDifference& load : comparison.loads) width = std::max(width, load.name.size());
  std::string text = absl::StrCat("\n", comparison.later, " against ", comparison.earlier, "\n");
  // Columns of characters, not of bytes.
  const auto append = [&](absl::string_view cell) {
    const size_t shown = cell.size() - (absl::StrContains(cell, "±") ? 1 : 0);
    absl::StrAppend(&text, std::string(shown < 16 ? 16 - shown : 1, ' '), cell);
  };
  absl::StrAppend(&text, std::string(width, ' '));
  for (const char* head : {"per s", "p50", "p99"}) append(head);
  for (const LoadDifference& load : comparison.loads) {
    absl::StrAppendFormat(&text, "\n%-*s", static_cast<int>(width), load.name);
    for (const auto& figure : {load.rate, load.p50, load.p99}) append(DifferenceText(figure));
  }
  return absl::StrCat(text, "\n(", kSpreadNote, ")\n");
}

}  // namespace tilewire::client
