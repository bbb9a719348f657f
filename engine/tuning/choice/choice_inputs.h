// SPDX-License-Identifier: Apache-2.0
//
// All that a choice works with, and that outlives it.
#ifndef ENGINE_TUNING_CHOICE_CHOICE_INPUTS_H_
#define ENGINE_TUNING_CHOICE_CHOICE_INPUTS_H_

#include <vector>

#include "absl/time/time.h"
#include "engine/model.h"
#include "engine/tuner.h"
#include "engine/tuning/calibration.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/model_source.h"
#include "engine/tuning/trial_runs.h"

namespace tilewire::tuning {

struct ChoiceInputs {
  const ModelSource& source;
  const std::vector<Layer>& layers;
  const Calibration& calibration;
  const TrialRuns& runs;
  const ExampleSet& set;
  const TuningSpec& spec;
  const Model& exact;
  const TrialOutputs& exact_outputs;  // of set.chosen
  int output = 0;                     // the one that the budget is of
  absl::Time deadline;
  absl::Duration trial_time;  // of one assignment on all examples of the choice
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CHOICE_CHOICE_INPUTS_H_
