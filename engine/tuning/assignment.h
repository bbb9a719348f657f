// SPDX-License-Identifier: Apache-2.0
//
// The precision of each layer, the ranges of the tensors between them and the corrections of their
// integers: all that the bits of a tuned file follow from.
#ifndef ENGINE_TUNING_ASSIGNMENT_H_
#define ENGINE_TUNING_ASSIGNMENT_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/tuner.h"
#include "engine/tuning/calibration.h"
#include "engine/tuning/conversions.h"
#include "engine/tuning/corrections/corrections.h"
#include "engine/tuning/corrections/equalization.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/qdq_file.h"
#include "engine/tuning/range_histogram.h"

namespace tilewire::tuning {

// For all layers int8. Shifts are those where the tensors are equalized.
struct CorrectionSet {
  std::vector<EqualizedRange> tensors;
  std::map<int, std::vector<float>> shifts;
};

// And what was measured of it on the examples of the choice.
struct Assignment {
  Precisions precisions;                             // of each layer
  std::vector<RangeMethod> methods;                  // of each group of tensors
  std::shared_ptr<const CorrectionSet> corrections;  // null: none
  MeasuredError error;
  double l2 = 0;
  double probability = 1;  // that as many other examples as are held out keep a share of changes
};

// The corrections that hold for the layers that are int8: a tensor is equalized only between two of
// them, and the shift of a layer that reads it goes with it.
Corrections CorrectionsOf(const Assignment& assignment);

// The ranges of the tensors that are converted, by name.
std::map<std::string, Range> RangesOf(const Assignment& assignment, const Conversions& conversions,
                                      const Calibration& calibration);
TensorParams ParamsOf(const std::map<std::string, Range>& ranges);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_ASSIGNMENT_H_
