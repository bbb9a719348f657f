// SPDX-License-Identifier: Apache-2.0
#include "client/load/rate_profile.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tilewire::client {
namespace {

constexpr double kMostRate = 1e6;  // requests per second, as of --rate

bool ParseRates(absl::string_view text, RateStage* stage) {
  const std::pair<absl::string_view, absl::string_view> rates = absl::StrSplit(text, '-');
  if (!absl::SimpleAtod(rates.first, &stage->from)) return false;
  stage->to = stage->from;
  const bool ramp = absl::StrContains(text, '-');
  if (ramp && !absl::SimpleAtod(rates.second, &stage->to)) return false;
  const auto is_rate = [](double rate) { return rate > 0 && rate <= kMostRate; };
  return is_rate(stage->from) && is_rate(stage->to);
}

bool ParseStage(absl::string_view text, RateStage* stage) {
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ':');
  return fields.size() == 2 && ParseRates(fields[0], stage) &&
         absl::ParseDuration(fields[1], &stage->length) && stage->length > absl::ZeroDuration() &&
         stage->length < absl::InfiniteDuration();
}

// Seconds from the start of a stage until `count` requests are expected: the root of
// count = from t + (to - from) / (2 length) t^2 in the form that is exact for a constant rate too.
double SecondsWithin(const RateStage& stage, double count) {
  const double length = absl::ToDoubleSeconds(stage.length);
  const double slope = length > 0 ? (stage.to - stage.from) / length : 0;
  return 2 * count /
         (stage.from + std::sqrt(std::max(0.0, stage.from * stage.from + 2 * slope * count)));
}

}  // namespace

absl::StatusOr<RateProfile> RateProfile::Parse(absl::string_view text) {
  std::vector<RateStage> stages;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    RateStage stage;
    if (!ParseStage(part, &stage)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part,
                       "' is not a stage of a profile, such as 100:10s or 100-400:30s, "
                       "of at most a million requests per second"));
    }
    stages.push_back(stage);
  }
  return RateProfile(std::move(stages));
}

bool RateProfile::is_constant() const {
  return std::all_of(stages_.begin(), stages_.end(), [this](const RateStage& stage) {
    return stage.from == stages_[0].from && stage.to == stages_[0].from;
  });
}

absl::Duration RateProfile::length() const {
  absl::Duration length;
  for (const RateStage& stage : stages_) length += stage.length;
  return length;
}

double RateProfile::RateAt(absl::Duration time) const {
  for (const RateStage& stage : stages_) {
    if (time < stage.length) {
      const double share = absl::FDivDuration(time, stage.length);
      return stage.from + (stage.to - stage.from) * share;
    }
    time -= stage.length;
  }
  return stages_.empty() ? 0 : stages_.back().to;
}

RateProfile RateProfile::After(absl::Duration length) const {
  if (stages_.empty() || length <= absl::ZeroDuration()) return *this;
  std::vector<RateStage> stages = stages_;
  stages.insert(stages.begin(), {stages[0].from, stages[0].from, length});
  return RateProfile(std::move(stages));
}

absl::Duration RateProfile::TimeOf(double count) const {
  absl::Duration start;
  for (const RateStage& stage : stages_) {
    const double within = absl::ToDoubleSeconds(stage.length) * (stage.from + stage.to) / 2;
    if (count < within) return start + absl::Seconds(SecondsWithin(stage, count));
    count -= within;
    start += stage.length;
  }
  return stages_.empty() ? absl::InfiniteDuration()
                         : start + absl::Seconds(count / stages_.back().to);
}

}  // namespace tilewire::client
