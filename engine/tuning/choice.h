// SPDX-License-Identifier: Apache-2.0
//
// The choice of the layers that are int8. In its order:
//
//   1. all layers int8, with each method of ranges; the best method is that of all tensors
//   2. the error of each layer alone, with each method; each tensor takes the method that the
//      layers which read it do best with
//   3. layers sorted by the square of the error that they cause alone over the time that they save;
//      those that save none come first
//   4. the least number of layers, from the front, that must stay exact to keep the budget, found
//      by bisection with the whole measured each time
//   5. each of these is tried again, the one that saves most first
//   6. layers that save no time are left exact if the whole is faster without them; so are, one by
//      one, those that save little
//
// Errors alone, and of predictions, are l2, which tells small errors apart where no answer changes.
// Thread-compatible.
#ifndef ENGINE_TUNING_CHOICE_H_
#define ENGINE_TUNING_CHOICE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/tuner.h"
#include "engine/tuning/calibration.h"
#include "engine/tuning/layer_times.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/qdq_file.h"
#include "engine/tuning/trial_runs.h"

namespace tilewire::tuning {

// An assignment, and what was measured of it on the examples of the choice.
struct Assignment {
  std::vector<bool> is_int8;         // of each layer
  std::vector<RangeMethod> methods;  // of each group of tensors
  MeasuredError error;
  double l2 = 0;
};

// All that a choice works with, and that outlives it.
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
};

class Choice {
 public:
  explicit Choice(const ChoiceInputs& inputs)
      : in_(inputs),
        writer_(inputs.source, inputs.layers),
        kept_(inputs.spec.budget.Part(inputs.spec.may_stay_exact ? kPartOfBudget : 1)),
        alone_(inputs.layers.size(), {-1, -1, -1}) {}

  // Ends early, with what it has, at the deadline and when the spec's `stop` is set.
  absl::Status Run();

  // The last one taken that keeps the budget; nullopt: none.
  const std::optional<Assignment>& best() const { return best_; }
  // The one nearest to the budget of all that were measured; nullopt: none was.
  const std::optional<Assignment>& nearest() const { return nearest_; }
  // The l2 that a layer causes if it alone is int8; -1: not measured.
  double ErrorAlone(int layer) const;
  const std::vector<LayerTime>& times() const { return times_; }  // empty: not measured
  int64_t tried() const { return tried_; }
  bool is_stopped() const { return is_stopped_; }
  bool is_out_of_time() const { return is_out_of_time_; }

  absl::StatusOr<std::string> FileOf(const Assignment& assignment);

 private:
  using ErrorsByMethod = std::array<double, kRangeMethods.size()>;

  // Choosing keeps to a part of the budget, so that other examples keep to the whole of it.
  static constexpr double kPartOfBudget = 0.8;

  absl::Status Measure(Assignment* assignment, int64_t most_examples);
  // Measures on all examples of the choice, and remembers it. Returns whether it keeps the budget.
  absl::StatusOr<bool> Try(std::vector<bool> is_int8);
  absl::Status FindMethod();
  absl::Status MeasureTimes();
  absl::Status MeasureAlone();
  // Each group takes the method that the layers which read it alone do best with.
  void TakeMethods();
  int GroupOf(int layer) const { return in_.calibration.GroupOf(in_.layers[layer].input); }
  absl::Status Descend();
  absl::Status LeaveOutTheSlow();
  // Takes the assignment in the place of best() if it keeps the budget and the whole is faster.
  absl::Status TakeIfFaster(std::vector<bool> is_int8);
  absl::Status TryAgain(const std::vector<int>& order, int left_out);
  std::vector<int> Order() const;
  absl::Duration SavedBy(int layer) const;
  bool IsEnding();
  void Report(double fraction, const std::string& text) const;

  const ChoiceInputs& in_;
  QdqWriter writer_;
  const ErrorBudget kept_;
  std::vector<RangeMethod> methods_;
  std::vector<ErrorsByMethod> alone_;  // of each layer; -1: not measured
  std::vector<LayerTime> times_;
  std::optional<Assignment> best_, nearest_;
  int64_t tried_ = 0;
  bool is_stopped_ = false, is_out_of_time_ = false;
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CHOICE_H_
