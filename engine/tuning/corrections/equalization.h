// SPDX-License-Identifier: Apache-2.0
//
// Tensors between two convolutions whose channels can be divided by factors, and what factors and
// ranges they get. What stands between the two must give f(x / s) = f(x) / s: nothing, Relu, or a
// Clip from 0 whose upper bound no example reaches in a channel that is divided by another number
// than 1. Channels that are divided by less than 1 then reach that bound sooner, but not sooner
// than their largest number over the examples, where integers end, too.
//
//   factor[c] = k sqrt(a[c] / w[c]), where k keeps the largest a[c] / factor[c] as large as the
//   largest a[c]; a[c] is the largest |x| of channel c over the examples, w[c] the largest |weight|
//   that reads it. A depthwise reader has a scale for each channel anyway: factor[c] is a[c] over
//   the largest one
//
// Immutable. Source: M. Nagel et al., Data-Free Quantization through Weight Equalization and Bias
// Correction, 2019, of which this differs by looking at the tensor instead of the giver's weights,
// which have a scale for each output here.
#ifndef ENGINE_TUNING_CORRECTIONS_EQUALIZATION_H_
#define ENGINE_TUNING_CORRECTIONS_EQUALIZATION_H_

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/tuning/corrections/corrections.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/model_source.h"
#include "engine/tuning/range_histogram.h"
#include "engine/tuning/trial_runs.h"

namespace tilewire::tuning {

// A tensor that can be equalized, without its factors.
struct Equalizable {
  std::string name;
  int giver = 0, reader = 0;  // indices of layers
  std::optional<float> most;  // the upper bound of a Clip
};

// In the order of their readers.
absl::StatusOr<std::vector<Equalizable>> FindEqualizable(const ModelSource& source,
                                                         const std::vector<Layer>& layers);

// `largest` are the largest |x| of each channel, `weights` the reader's, [O, I / groups, ...].
std::vector<float> FactorsOf(const std::vector<float>& largest, const std::vector<float>& weights,
                             const Dims& dims, std::optional<float> most);

struct EqualizedRange {
  EqualizedTensor tensor;
  std::array<Range, kRangeMethods.size()> ranges;  // of what is divided
};

// With factors and ranges over the examples of the choice. Errors: those of TrialRuns and
// ModelSource.
absl::StatusOr<std::vector<EqualizedRange>> Equalize(const ModelSource& source,
                                                     const std::vector<Layer>& layers,
                                                     const TrialRuns& runs, const ExampleSet& set);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CORRECTIONS_EQUALIZATION_H_
