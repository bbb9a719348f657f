// SPDX-License-Identifier: Apache-2.0
//
// The choice of the precision of each layer: exact, bf16 or int8. In its order:
//
//   1. all layers int8, with each method of ranges; the best method is that of all tensors
//   2. the error of each layer alone, int8 with each method and bf16; each tensor takes the method
//      that the layers which read it do best with
//   3. corrections (corrections.cc): those that lower the error of the layers that they are
//      of alone, and then that of all layers int8
//   4. steps from int8 to bf16 and from there to exact, sorted by the square of the error that each
//      removes over the time that it costs; those that cost none come first. A layer goes from int8
//      to exact at once where the second step would come before the first: these are the vertices
//      of the lower convex hull of its squares of errors and times, so that the prefixes of the
//      list are the answers of the Lagrangian relaxation of the knapsack that this is
//   5. the least number of steps, from the front, that keep the budget, by bisection of wholes
//   6. regions: the first or the last layers more exact, as few as keep the budget, and all bf16;
//      they are taken if the whole is faster, since they have fewer conversions
//   7. each layer that took a step is tried again without it, the one that saves most first
//   8. layers that save no time, then those that save little, become more exact if that is faster
//   9. the finals (finals.cc): the exact model, all layers bf16, all int8 and what was found so
//      far are timed in turns, whole; the fastest is the best
//
// With a goal, goal.cc stands in the place of 4 to 6: the most steps with which the whole is
// as fast as that.
//
// A layer is bf16 only where its error alone was measured and is not 0: without a row for it, bf16
// would be exact here and something else on other CPUs. Without int8, all begin as bf16.
//
// Errors alone, and of predictions, are l2, which tells small errors apart where no answer changes.
// Thread-compatible.
#ifndef ENGINE_TUNING_CHOICE_CHOICE_H_
#define ENGINE_TUNING_CHOICE_CHOICE_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/tuner.h"
#include "engine/tuning/assignment.h"
#include "engine/tuning/choice/choice_inputs.h"
#include "engine/tuning/choice/final_round.h"
#include "engine/tuning/layer_times.h"
#include "engine/tuning/qdq_file.h"

namespace tilewire::tuning {

class Choice {
 public:
  explicit Choice(const ChoiceInputs& inputs)
      : in_(inputs),
        writer_(inputs.source, inputs.layers),
        kept_(inputs.spec.budget.Part(inputs.spec.may_stay_exact ? kPartOfBudget : 1)),
        alone_(inputs.layers.size(), {-1, -1, -1}),
        bf16_alone_(inputs.layers.size(), -1) {}

  // Ends early, with what it has, at the deadline and when the spec's `stop` is set.
  absl::Status Run();
  // After Run() found a result that missed the budget on other examples, or the goal: chooses among
  // the same layers once more, for half the budget, more surely, and with more room below the goal;
  // without a goal, not the precisions again that missed the budget.
  absl::Status RunAgain(bool misses_budget);
  // Whether patience or the time are at their end, or the time has no room for another trial.
  bool IsEnding();

  // The last one taken that keeps the budget; nullopt: none.
  const std::optional<Assignment>& best() const { return best_; }
  // One that is clearly faster and keeps the budget, too, on the examples of the choice, without
  // its margins; nullopt: none.
  const std::optional<Assignment>& bolder() const { return bolder_; }
  // The entrants of the last finals; `chosen` is the one that was taken at last, null: none.
  std::vector<Finalist> FinalistsWith(const Assignment* chosen) const;
  // The one nearest to the budget of all that were measured; nullopt: none was.
  const std::optional<Assignment>& nearest() const { return nearest_; }
  // The l2 that a layer causes if it alone has the precision; -1: not measured.
  double ErrorAlone(int layer, TunedPrecision precision) const;
  const std::vector<LayerTime>& times() const { return times_; }  // empty: not measured
  int64_t tried() const { return tried_; }
  bool is_stopped() const { return is_stopped_; }
  bool is_out_of_time() const { return is_out_of_time_; }
  const std::vector<TriedPoint>& curve() const { return curve_; }
  // By the times of its layers; zero if they were not measured.
  absl::Duration EstimateOf(const Precisions& precisions) const;

  std::map<std::string, Range> RangesOf(const Assignment& assignment) const;
  absl::StatusOr<std::string> FileOf(const Assignment& assignment);
  absl::StatusOr<std::shared_ptr<const Model>> Load(const Assignment& assignment);

 private:
  using ErrorsByMethod = std::array<double, kRangeMethods.size()>;
  // Makes a layer more exact.
  struct Step {
    int layer = 0;
    TunedPrecision to = TunedPrecision::kExact;
  };

  // Choosing keeps to a part of the budget, so that other examples keep to the whole of it.
  static constexpr double kPartOfBudget = 0.8, kPartOfBudgetAgain = 0.4;
  // And to assignments that so probably keep a share of changes where they were not chosen; if none
  // is found in time, the most probable one is checked on what is held out as any other.
  static constexpr double kLeastProbability = 0.95, kLeastProbabilityAgain = 0.99;
  static constexpr int64_t kExamplesAlone = 16;  // that the error of a single layer is measured on
  static constexpr int64_t kExamplesCorrected = 64;  // that a correction is tried on
  static constexpr double kMarginOfGoal = 1.03, kMarginOfGoalAgain = 1.1;  // for other runs
  static constexpr double kDoneByMethods = 0.15, kDoneByAlone = 0.6, kDoneByDescent = 0.85;

  bool Keeps(const Assignment& assignment) const;
  bool KeepsPart(const Assignment& assignment) const;  // however probably elsewhere
  // Remembers what may be the result if nothing better is found in time, or is in the finals.
  void Remember(const Assignment& assignment);
  void RememberUniform(const Assignment& assignment);
  // The exact one, those that are uniform, and the best; each once.
  std::vector<Assignment> Entrants() const;
  absl::Status RunFinals();
  absl::Status Measure(Assignment* assignment, int64_t most_examples);
  // Measures on all examples of the choice, and remembers it. Returns whether it keeps the budget.
  absl::StatusOr<bool> Try(Precisions precisions);
  absl::Status FindMethod();
  absl::Status MeasureTimes();
  absl::Status MeasureAlone();
  absl::StatusOr<double> MeasureAlone(int layer, TunedPrecision precision, RangeMethod method);
  // Each group takes the method that the layers which read it alone do best with.
  void TakeMethods();
  int GroupOf(int layer) const { return in_.calibration.GroupOf(in_.layers[layer].input); }
  absl::Status FindCorrections();
  absl::Status FindEqualized(CorrectionSet* set);
  absl::Status FindShifts(CorrectionSet* set);
  // The l2 where these layers alone are int8.
  absl::StatusOr<double> MeasureSome(const std::vector<int>& layers,
                                     const CorrectionSet& corrections);
  // As many examples of the choice as half of the corrections' time has room for; none: too few.
  ExampleSet ObservedForCorrections() const;
  bool HasTimeForCorrections() { return !IsEnding() && absl::Now() < end_of_corrections_; }
  absl::Status Descend();
  absl::Status TryAllBf16();
  absl::Status MeasureAllBf16();
  // Conversions between precisions may cost more than layers save: one region of layers that are as
  // fast as can be, with the first or the last ones more exact, is tried against what was found.
  absl::Status TryRegions();
  absl::Status TryRegion(bool is_front_exact);
  // Calls `choose`; a stop ends it without an error.
  absl::Status UntilStopped(absl::FunctionRef<absl::Status()> choose);
  absl::Status DescendToGoal(const std::vector<Step>& steps);
  // Whether the whole is as fast as the goal; takes it in the place of best() if it then has less
  // error.
  absl::StatusOr<bool> TakeIfFastEnough(Precisions precisions);
  absl::Status LeaveOutTheSlow();
  // Takes the assignment in the place of best() if it keeps the budget and the whole is faster.
  absl::Status TakeIfFaster(Precisions precisions);
  // Layers that a step made more exact.
  absl::Status TryAgain(const std::vector<Step>& steps);
  std::vector<Step> Steps() const;
  void AddSteps(int layer, double ordinary_square,
                std::vector<std::pair<double, Step>>* steps) const;
  // All layers as fast as can be; and bf16, those that can be.
  Precisions Fastest() const;
  Precisions AllBf16() const;
  bool MayBeBf16(int layer) const { return in_.spec.may_be_bf16 && bf16_alone_[layer] > 0; }
  // The fastest of the precisions that are more exact than this one.
  TunedPrecision MoreExact(int layer, TunedPrecision precision) const;
  // The time that a layer saves against MoreExact().
  absl::Duration SavedBy(int layer, TunedPrecision precision) const;
  void AddToCurve(const Assignment& assignment);
  void Report(double fraction, const std::string& text) const;

  const ChoiceInputs& in_;
  QdqWriter writer_;
  ErrorBudget kept_;
  double least_probability_ = kLeastProbability, margin_of_goal_ = kMarginOfGoal;
  double done_before_ = 0;  // of the whole work, which no report goes back behind
  absl::Duration room_;     // that the last one taken leaves below the goal
  std::vector<RangeMethod> methods_;
  std::vector<ErrorsByMethod> alone_;                 // of each layer, int8; -1: not measured
  std::vector<double> bf16_alone_;                    // the same of bf16
  std::shared_ptr<const CorrectionSet> corrections_;  // null: none
  absl::Time end_of_corrections_;
  std::vector<LayerTime> times_;
  absl::Duration beside_layers_;  // in the exact model
  std::vector<TriedPoint> curve_;
  std::optional<Assignment> bolder_, best_, nearest_;
  Precisions missed_;                   // of a first choice; empty: none
  std::optional<Assignment> probable_;  // keeps its part of the budget, however probably elsewhere
  std::vector<Assignment> uniform_;     // all int8, all bf16; of each the one with the least l2
  std::vector<Assignment> entrants_;    // of the finals
  std::vector<Finalist> finalists_;
  int64_t tried_ = 0;
  bool is_stopped_ = false, is_out_of_time_ = false;
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_CHOICE_CHOICE_H_
