// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/cost.h"

#include <algorithm>

namespace tilewire::service {
namespace {

constexpr double kWeightOfLonger = 0.2, kWeightOfShorter = 0.5;
// A run that was held up makes a rate look low, nothing makes it look high: the best one counts,
// and is forgotten slowly.
constexpr double kKeptOfRate = 0.98;
// Small runs tell little of ones that are larger by far, as some of their time is not computing.
constexpr int64_t kMostTimesLarger = 64;
constexpr size_t kMostKeys = 4096;  // clients choose shapes: what is learned stays bounded

}  // namespace

absl::Duration CostTable::Expected(uint64_t key) const {
  const auto found = costs_.find(key);
  return found == costs_.end() ? absl::ZeroDuration() : found->second.mean;
}

void CostTable::Record(uint64_t key, absl::Duration taken) {
  if (key == 0) return;
  if (costs_.size() >= kMostKeys && !costs_.contains(key)) costs_.clear();
  const auto [place, inserted] = costs_.try_emplace(key, Cost{taken});
  if (inserted) return;
  Cost& cost = place->second;
  if (cost.first) {
    cost = {.mean = taken, .first = false};
  } else if (taken < cost.mean) {
    cost.mean += (taken - cost.mean) * kWeightOfShorter;
  } else {
    cost.mean += (std::min(taken, 2 * cost.mean) - cost.mean) * kWeightOfLonger;
  }
}

absl::Duration CostTable::AtItsRate(const std::string& model, int64_t operations) const {
  const auto found = rates_.find(model);
  if (found == rates_.end() || operations <= 0) return absl::ZeroDuration();
  const Rate& best = found->second;
  const auto most = static_cast<double>(best.operations) * kMostTimesLarger;
  return absl::Seconds(std::min(static_cast<double>(operations), most) / best.per_second);
}

void CostTable::RecordRate(const std::string& model, int64_t operations, absl::Duration taken) {
  if (operations <= 0 || taken <= absl::ZeroDuration()) return;
  const Rate rate = {operations / absl::ToDoubleSeconds(taken), operations};
  if (rates_.size() >= kMostKeys && !rates_.contains(model)) rates_.clear();
  const auto [place, inserted] = rates_.try_emplace(model, rate);
  if (inserted) return;
  place->second.per_second *= kKeptOfRate;
  if (rate.per_second >= place->second.per_second) place->second = rate;
}

}  // namespace tilewire::service
