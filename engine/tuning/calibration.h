// SPDX-License-Identifier: Apache-2.0
//
// The ranges of the tensors that may become u8, observed in the exact model while it runs on
// examples, so that what its passes fold is folded. Tensors that are tied (conversions.h) have one
// range, whichever layers are int8. Immutable once observed.
#ifndef ENGINE_TUNING_CALIBRATION_H_
#define ENGINE_TUNING_CALIBRATION_H_

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/tuning/conversions.h"
#include "engine/tuning/model_source.h"
#include "engine/tuning/range_histogram.h"
#include "engine/tuning/trial_runs.h"

namespace tilewire::tuning {

class Calibration {
 public:
  // `all` are the conversions where all layers are int8. The examples of the choice are observed;
  // `seen` is called after each.
  //   kInvalidArgument  numbers that are not finite; the message names the tensor and the example
  //   and the errors of TrialRuns
  static absl::StatusOr<Calibration> Observe(const ModelSource& source, const Conversions& all,
                                             const TrialRuns& runs, const ExampleSet& set,
                                             const ModelSignature& signature,
                                             const std::function<void(int64_t)>& seen);

  int groups() const { return static_cast<int>(ranges_.size()); }
  // The group of tied tensors that one of `all` belongs to.
  int GroupOf(const std::string& tensor) const { return groups_.at(tensor); }
  const Range& RangeOf(int group, RangeMethod method) const {
    return ranges_[group][static_cast<int>(method)];
  }

 private:
  absl::flat_hash_map<std::string, int> groups_;
  std::vector<std::array<Range, kRangeMethods.size()>> ranges_;
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CALIBRATION_H_
