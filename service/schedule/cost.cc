// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/cost.h"

namespace tilewire::service {
namespace {

constexpr double kWeightOfLast = 0.2;
constexpr size_t kMostKeys = 4096;  // clients choose shapes: what is learned stays bounded

}  // namespace

absl::Duration CostTable::Expected(const std::string& key) const {
  const auto found = costs_.find(key);
  return found == costs_.end() ? absl::ZeroDuration() : found->second.mean;
}

void CostTable::Record(const std::string& key, absl::Duration taken) {
  if (key.empty()) return;
  if (costs_.size() >= kMostKeys && !costs_.contains(key)) costs_.clear();
  const auto [place, inserted] = costs_.try_emplace(key, Cost{taken});
  if (inserted) return;
  Cost& cost = place->second;
  cost.mean = cost.first ? taken : cost.mean * (1 - kWeightOfLast) + taken * kWeightOfLast;
  cost.first = false;
}

}  // namespace tilewire::service
