// SPDX-License-Identifier: Apache-2.0
//
// How far rounding moves the mean of each output of each layer, over the examples of the choice:
//
//   shift[o] = mean(z[o]) - mean(y[o])
//
// y is what the layer gives in the exact model, z what it gives in integers for the same exact
// source, both before what follows them; the mean is over examples and positions. Where the layer
// gives a tensor that is equalized, z is multiplied by its factors again. Pure function.
#ifndef ENGINE_TUNING_CORRECTIONS_BIAS_SHIFT_H_
#define ENGINE_TUNING_CORRECTIONS_BIAS_SHIFT_H_

#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tuning/corrections/corrections.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/qdq_file.h"
#include "engine/tuning/trial_runs.h"

namespace tilewire::tuning {

// By index of the layer; those that take none are left out. `tensors` are what all layers read.
// Errors: those of QdqWriter and TrialRuns.
absl::StatusOr<std::map<int, std::vector<float>>> MeasureShifts(
    const std::vector<Layer>& layers, const TensorParams& tensors,
    const std::vector<EqualizedTensor>& equalized, const TrialRuns& runs, const ExampleSet& set,
    QdqWriter* writer);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CORRECTIONS_BIAS_SHIFT_H_
