// SPDX-License-Identifier: Apache-2.0
#include "client/load/report/stability.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

constexpr size_t kFewestSeconds = 3;

// Some sentence for each of many seconds would bury the others.
constexpr size_t kMostSentences = 3;

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::vector<LoadWindow> WholeSeconds(const LoadReport& report) {
  std::vector<LoadWindow> seconds;
  for (const LoadWindow& window : report.windows) {
    if (window.length_s >= 1) seconds.push_back(window);
  }
  return seconds;
}

template <typename Value>
double MedianOfSeconds(const std::vector<LoadWindow>& seconds, Value value) {
  std::vector<double> values;
  for (const LoadWindow& second : seconds) values.push_back(value(second));
  return MedianOf(std::move(values));
}

double Median50(const LoadWindow& window) { return absl::ToDoubleSeconds(window.p50); }

std::vector<LoadWindow> WithAnswers(const std::vector<LoadWindow>& seconds) {
  std::vector<LoadWindow> answered;
  for (const LoadWindow& second : seconds) {
    if (second.answered > 0) answered.push_back(second);
  }
  return answered;
}

double MedianAnswers(const std::vector<LoadWindow>& seconds) {
  return MedianOfSeconds(seconds, [](const LoadWindow& w) { return double(w.answered); });
}

// How far a count may be from that of a median second by chance.
double MostOff(double median) { return std::max(0.2 * median, 4 * std::sqrt(median)); }

// Seconds one after the other without an answer, where chance leaves none without: some would have
// come, and requests do not take as long.
void JudgeSilence(const LoadReport& report, const std::vector<LoadWindow>& seconds,
                  std::vector<std::string>* reasons) {
  const double median = MedianAnswers(WithAnswers(seconds));
  const double usual_s = absl::ToDoubleSeconds(report.latencies.Percentile(50));
  for (size_t first = 0, end = 0; first < seconds.size(); first = end + 1) {
    for (end = first; end < seconds.size() && seconds[end].answered == 0;) ++end;
    const double length = end - first, missing = length * median;
    if (missing <= MostOff(missing) || length <= usual_s) continue;
    const double from = seconds[first].start_s + 1, to = seconds[end - 1].start_s + 1;
    reasons->push_back(from == to
                           ? absl::StrFormat("no answers in second %.0f", from)
                           : absl::StrFormat("no answers in seconds %.0f to %.0f", from, to));
  }
}

void JudgeRates(const std::vector<LoadWindow>& seconds, std::vector<std::string>* reasons) {
  const double median = MedianAnswers(seconds);
  for (const LoadWindow& second : seconds) {
    if (std::fabs(second.answered - median) <= MostOff(median)) continue;
    reasons->push_back(absl::StrFormat("second %.0f had %s, the median second %.0f",
                                       second.start_s + 1, CountText(second.answered, "answer"),
                                       median));
  }
}

void JudgeLatencies(const std::vector<LoadWindow>& seconds, std::vector<std::string>* reasons) {
  const double median = MedianOfSeconds(seconds, Median50);
  for (const LoadWindow& second : seconds) {
    const double p50 = Median50(second);
    if (p50 <= 2 * median && 2 * p50 >= median) continue;
    reasons->push_back(absl::StrFormat("second %.0f had a p50 of %s, the median second %s",
                                       second.start_s + 1, LatencyText(second.p50),
                                       LatencyText(absl::Seconds(median))));
  }
}

// Adds a reason if, in an open loop, outstanding answers grow from third to third.
void JudgeBacklog(const std::vector<LoadWindow>& seconds, std::vector<std::string>* reasons) {
  const size_t third = seconds.size() / 3;
  const auto waiting = [&](size_t from) {
    const std::vector<LoadWindow> part(seconds.begin() + from, seconds.begin() + from + third);
    return MedianOfSeconds(part, [](const LoadWindow& w) { return double(w.waiting); });
  };
  const double first = waiting(0), middle = waiting(third), last = waiting(2 * third);
  const double rate = MedianAnswers(seconds);
  if (!(first < middle && middle < last) || last - first <= std::max(10.0, 0.05 * rate)) return;
  reasons->push_back(absl::StrFormat(
      "answers outstanding grew from %.0f to %.0f: the server cannot keep up", first, last));
}

void Shorten(std::vector<std::string>* reasons, size_t before) {
  const size_t added = reasons->size() - before;
  if (added <= kMostSentences) return;
  reasons->resize(before + kMostSentences);
  reasons->push_back(absl::StrFormat("%d more seconds like these", added - kMostSentences));
}

// The short runs of a search are many instead of long, and end as soon as they cannot hold: no
// reason for doubt.
std::vector<std::string> ReasonsForDoubt(const LoadReport& report, bool is_of_search) {
  std::vector<std::string> reasons = ClientLimits(report);
  if (!is_of_search) {
    for (std::string& reason : WhyUnstable(report)) reasons.push_back(std::move(reason));
    if (report.ended_early())
      reasons.push_back("the load was ended early: " + report.ended_because);
  }
  if (!report.first_error.empty()) reasons.push_back("first error: " + report.first_error);
  return reasons;
}

std::string WithoutNumbers(absl::string_view text) {
  std::string rest;
  for (char c : text) {
    if (!absl::ascii_isdigit(c) && c != '.') rest += c;
  }
  return rest;
}

struct Doubt {
  std::string kind, text;
  std::vector<std::string> likewise;  // runs
};

}  // namespace

std::vector<std::string> WhyUnstable(const LoadReport& report) {
  const std::vector<LoadWindow> seconds = WholeSeconds(report);
  if (seconds.size() < kFewestSeconds)
    return {"fewer than three seconds were measured: too few to compare"};
  std::vector<std::string> reasons;
  const std::vector<LoadWindow> answered = WithAnswers(seconds);
  if (!report.changes && !answered.empty()) {
    JudgeSilence(report, seconds, &reasons);
    JudgeRates(answered, &reasons);
    Shorten(&reasons, 0);
    const size_t before = reasons.size();
    JudgeLatencies(answered, &reasons);
    Shorten(&reasons, before);
  }
  if (report.is_open()) JudgeBacklog(seconds, &reasons);
  return reasons;
}

std::vector<std::string> ClientLimits(const LoadReport& report) {
  std::vector<std::string> reasons;
  const absl::Duration late = report.lateness.Percentile(99);
  if (late > std::max(absl::Milliseconds(1), report.latencies.Percentile(99) / 10)) {
    reasons.push_back(
        absl::StrFormat("requests left up to %s late (p99): fewer requests, more --connections "
                        "or a faster machine",
                        LatencyText(late)));
  }
  if (report.cores() > 0.9 * report.threads) {
    reasons.push_back(absl::StrFormat(
        "this client used %.2f cores with %d threads: more --threads, or several generators",
        report.cores(), report.threads));
  }
  return reasons;
}

std::vector<std::string> Doubts(const LoadRecord& record) {
  std::vector<Doubt> doubts;
  for (const LoadReport& report : record.runs) {
    std::map<std::string, int> seen;  // in this run
    for (const std::string& reason : ReasonsForDoubt(report, !record.bound.empty())) {
      const std::string words = WithoutNumbers(reason);
      const std::string kind = absl::StrCat(words, " ", ++seen[words]);
      const auto said = std::find_if(doubts.begin(), doubts.end(),
                                     [&](const Doubt& doubt) { return doubt.kind == kind; });
      if (said == doubts.end()) {
        doubts.push_back({kind, absl::StrCat(report.name, ": ", reason), {}});
      } else {
        said->likewise.push_back(report.name);
      }
    }
  }
  std::vector<std::string> texts;
  for (const Doubt& doubt : doubts) {
    const bool alone = doubt.likewise.empty();
    texts.push_back(
        absl::StrCat(doubt.text, alone ? "" : "; likewise: ", absl::StrJoin(doubt.likewise, ", ")));
  }
  return texts;
}

}  // namespace tilewire::client
