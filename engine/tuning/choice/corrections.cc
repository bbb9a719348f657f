// SPDX-License-Identifier: Apache-2.0
//
// The corrections that a choice takes. Each is tried with the layers that it is of alone; what
// lowers their error there is kept. Of what is left, all layers int8 decide: with none, with one
// kind or with both.
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/tuning/choice/choice.h"
#include "engine/tuning/corrections/bias_shift.h"
#include "engine/tuning/time_plan.h"

namespace tilewire::tuning {

absl::StatusOr<double> Choice::MeasureSome(const std::vector<int>& layers,
                                           const CorrectionSet& corrections) {
  Assignment some{.precisions = Precisions(in_.layers.size(), TunedPrecision::kExact),
                  .methods = methods_,
                  .corrections = std::make_shared<CorrectionSet>(corrections)};
  for (int layer : layers) some.precisions[layer] = TunedPrecision::kInt8;
  ABSL_RETURN_IF_ERROR(Measure(&some, kExamplesCorrected));
  return some.l2;
}

ExampleSet Choice::ObservedForCorrections() const {
  ExampleSet observed = in_.set;
  observed.KeepOnly(TimePlan::Observable(static_cast<int64_t>(observed.chosen.size()),
                                         in_.trial_time, (end_of_corrections_ - absl::Now()) / 2),
                    static_cast<int64_t>(observed.held_out.size()));
  return observed;
}

absl::Status Choice::FindEqualized(CorrectionSet* set) {
  Report(kDoneByAlone, "channels of tensors between two layers");
  const ExampleSet observed = ObservedForCorrections();
  if (observed.chosen.empty()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(set->tensors, Equalize(in_.source, in_.layers, in_.runs, observed));
  if (!in_.spec.may_stay_exact) return absl::OkStatus();
  std::vector<EqualizedRange> taken;
  for (EqualizedRange& one : set->tensors) {
    if (!HasTimeForCorrections()) break;
    Report(kDoneByAlone, absl::StrCat("with even channels of ", one.tensor.name));
    const std::vector<int> layers = {one.tensor.giver, one.tensor.reader};
    ABSL_ASSIGN_OR_RETURN(const double without, MeasureSome(layers, {}));
    ABSL_ASSIGN_OR_RETURN(const double with, MeasureSome(layers, {.tensors = {one}}));
    if (with < without) taken.push_back(std::move(one));
  }
  set->tensors = std::move(taken);
  return absl::OkStatus();
}

absl::Status Choice::FindShifts(CorrectionSet* set) {
  Report(kDoneByAlone, "what rounding moves the mean of each output by");
  const ExampleSet observed = ObservedForCorrections();
  if (observed.chosen.empty()) return absl::OkStatus();
  const int layers = static_cast<int>(in_.layers.size());
  Assignment all{.precisions = Precisions(layers, TunedPrecision::kInt8),
                 .methods = methods_,
                 .corrections = std::make_shared<CorrectionSet>(*set)};
  ABSL_ASSIGN_OR_RETURN(
      auto shifts, MeasureShifts(in_.layers, ParamsOf(RangesOf(all)), CorrectionsOf(all).tensors,
                                 in_.runs, observed, &writer_));
  if (!in_.spec.may_stay_exact) {
    set->shifts = std::move(shifts);
    return absl::OkStatus();
  }
  for (auto& [layer, shift] : shifts) {
    if (!HasTimeForCorrections()) break;
    Report(kDoneByAlone, absl::StrFormat("layer %d of %d with its mean corrected: %s", layer + 1,
                                         layers, in_.layers[layer].name));
    std::vector<int> some = {layer};
    for (const EqualizedRange& one : set->tensors) {
      if (one.tensor.reader == layer) some.push_back(one.tensor.giver);
    }
    CorrectionSet trial{.tensors = set->tensors};
    ABSL_ASSIGN_OR_RETURN(const double without, MeasureSome(some, trial));
    trial.shifts[layer] = shift;
    ABSL_ASSIGN_OR_RETURN(const double with, MeasureSome(some, trial));
    if (with >= without) continue;
    set->shifts[layer] = std::move(shift);
  }
  return absl::OkStatus();
}

absl::Status Choice::FindCorrections() {
  if (!in_.spec.may_be_int8 || IsEnding()) return absl::OkStatus();
  CorrectionSet both;
  ABSL_RETURN_IF_ERROR(FindEqualized(&both));
  if (IsEnding()) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(FindShifts(&both));
  Report(kDoneByAlone, "all layers int8, with corrections");
  std::vector<std::shared_ptr<const CorrectionSet>> sets = {nullptr};
  if (!both.shifts.empty()) {
    sets.push_back(std::make_shared<CorrectionSet>(both));
    // Shifts are those of tensors that are equalized.
    if (!both.tensors.empty())
      sets.push_back(std::make_shared<CorrectionSet>(CorrectionSet{.tensors = both.tensors}));
  } else if (!both.tensors.empty()) {
    sets.push_back(std::make_shared<CorrectionSet>(both));
  }
  std::optional<Assignment> least;
  for (const auto& set : sets) {
    if (IsEnding()) break;
    Assignment all{.precisions = Precisions(in_.layers.size(), TunedPrecision::kInt8),
                   .methods = methods_,
                   .corrections = set};
    ABSL_RETURN_IF_ERROR(Measure(&all, static_cast<int64_t>(in_.set.chosen.size())));
    if (!least || all.l2 < least->l2) least = std::move(all);
  }
  if (!least) return absl::OkStatus();
  corrections_ = least->corrections;
  Remember(*least);
  if (!in_.spec.may_stay_exact && Keeps(*least) && (!best_ || least->l2 < best_->l2)) best_ = least;
  return absl::OkStatus();
}

}  // namespace tilewire::tuning
