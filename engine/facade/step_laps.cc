// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/step_laps.h"

#include <cstddef>

namespace tilewire {

StepLaps::StepLaps(const runtime::Plan& plan, LongestSteps* longest)
    : plan_(plan), longest_(longest) {
  if (longest_ != nullptr)
    laps_.reserve(plan.inputs.size() + plan.steps.size() + plan.outputs.size());
}

// The laps follow each other up to now.
void StepLaps::Keep() const {
  if (longest_ == nullptr) return;
  absl::Duration all;
  for (absl::Duration lap : laps_) all += lap;
  LongestSteps::Clock::time_point start =
      LongestSteps::Clock::now() - absl::ToChronoNanoseconds(all);
  const size_t first = plan_.inputs.size(), end = first + plan_.steps.size();
  for (size_t row = 0; row < end; ++row) {
    const auto time = absl::ToChronoNanoseconds(laps_[row]);
    if (row >= first) longest_->Add(plan_.steps[row - first].node, start, time);
    start += time;
  }
}

}  // namespace tilewire
