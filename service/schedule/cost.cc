// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/cost.h"

#include <algorithm>

namespace tilewire::service {
namespace {

constexpr double kWeightOfLonger = 0.2, kWeightOfShorter = 0.5;
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

}  // namespace tilewire::service
