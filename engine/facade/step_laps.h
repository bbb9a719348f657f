// SPDX-License-Identifier: Apache-2.0
//
// The times of the steps of one execution of a plan, for RunOptions::longest_steps. Where they are
// not asked for, nothing is measured and no memory is taken. Thread-compatible.
#ifndef ENGINE_FACADE_STEP_LAPS_H_
#define ENGINE_FACADE_STEP_LAPS_H_

#include <vector>

#include "absl/time/time.h"
#include "engine/longest_steps.h"
#include "engine/runtime/plan.h"

namespace tilewire {

class StepLaps {
 public:
  // Both outlive the object; `longest` may be null.
  StepLaps(const runtime::Plan& plan, LongestSteps* longest);

  // For ExecutionContext::laps.
  std::vector<absl::Duration>* laps() { return longest_ == nullptr ? nullptr : &laps_; }
  // To be called when the execution has just come to its end.
  void Keep() const;

 private:
  const runtime::Plan& plan_;
  LongestSteps* const longest_;
  std::vector<absl::Duration> laps_;  // of the inputs, the steps and the requested outputs
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_STEP_LAPS_H_
