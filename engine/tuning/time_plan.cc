// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/time_plan.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewire::tuning {
namespace {

constexpr int kRangesAsRuns = 3;  // of an example, whose tensors are all given and counted
constexpr int kObservedAsTrials = 4;
constexpr int kLoadsOfCheck = 6;
const absl::Duration kShortestTime = absl::Seconds(1);
constexpr double kPartOfTheLeast = 0.5;  // of the time; the rest is for choosing

std::string SecondsText(absl::Duration time) {
  return absl::FormatDuration(absl::Ceil(time, absl::Seconds(1)));
}

std::string CountsText(const ExampleCounts& counts) {
  return absl::StrCat(counts.chosen, " examples to choose by and ", counts.held_out,
                      " to check with");
}

}  // namespace

absl::Duration TimePlan::AtLeast(absl::Duration time) { return std::max(time, kShortestTime); }

int64_t TimePlan::Observable(int64_t all, absl::Duration trial, absl::Duration time) {
  const absl::Duration pass = trial * kObservedAsTrials;
  if (pass <= time) return all;
  const double share = std::max(absl::FDivDuration(time, pass), 0.0);
  const auto count = static_cast<int64_t>(share * static_cast<double>(all));
  return count < std::min(all, kLeastExamples) ? 0 : count;
}

absl::Duration TimePlan::Turns(int models) const {
  const absl::Duration most = MostOfTurns(time_), turn = run_ * models;
  return std::max(std::min(kTimeOfTurns, most),
                  std::min(turn * (kTurns + 1), std::max(turn * (kLeastTurns + 1), most)));
}

absl::Duration TimePlan::Trial(int64_t examples) const {
  return load_ + run_ * static_cast<double>(examples);
}

absl::Duration TimePlan::Check(const ExampleCounts& counts) const {
  return Trial(counts.chosen) + Turns(4) + 2 * Turns(2) +
         run_ * static_cast<double>(3 * counts.held_out) + kLoadsOfCheck * load_;
}

absl::Duration TimePlan::Least(const ExampleCounts& counts) const {
  return run_ * static_cast<double>((1 + kRangesAsRuns) * counts.chosen) + Trial(counts.chosen) +
         Check(counts);
}

absl::StatusOr<ExampleCounts> TimePlan::Fit(const ExampleCounts& all, absl::Duration left) const {
  const absl::Duration has = time_ <= kShortestTime ? AtLeast(left) : left;
  const absl::Duration wanted = has * kPartOfTheLeast, alone = Least({});
  const double share = wanted > alone ? absl::FDivDuration(wanted - alone, Least(all) - alone) : 0;
  if (share >= 1) return all;
  const auto part = [&](int64_t count) {
    return static_cast<int64_t>(share * static_cast<double>(count));
  };
  const ExampleCounts least = {std::min(all.chosen, kLeastExamples),
                               std::min(all.held_out, kLeastExamples)};
  const ExampleCounts fitting = {std::max(part(all.chosen), least.chosen),
                                 std::max(part(all.held_out), least.held_out)};
  if (Least(fitting) <= has) return fitting;
  const absl::Duration spent = std::max(AtLeast(time_) - left, absl::ZeroDuration());
  return absl::DeadlineExceededError(absl::StrCat(
      "a time of ", absl::FormatDuration(time_), " is not enough: a run takes ",
      absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(run_)), " and a file ",
      absl::StrFormat("%.3g ms", absl::ToDoubleMilliseconds(load_)), " to load, so that ",
      CountsText(least), " need ", SecondsText(spent + Least(least)), " at least, and all ",
      all.chosen, " and ", all.held_out, " ", SecondsText(spent + Least(all))));
}

}  // namespace tilewire::tuning
