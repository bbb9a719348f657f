// SPDX-License-Identifier: Apache-2.0
//
// The finals of a choice: what keeps its budget, who enters them, and what is taken of them
// (final_round.h).
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/tuning/choice/choice.h"
#include "engine/tuning/time_plan.h"

namespace tilewire::tuning {
namespace {

bool IsAll(const Precisions& precisions, TunedPrecision wanted) {
  return absl::c_all_of(precisions, [=](TunedPrecision one) { return one == wanted; });
}

std::string NameOf(const Precisions& precisions, const Precisions& all_bf16) {
  if (IsAll(precisions, TunedPrecision::kExact)) return "exact";
  if (IsAll(precisions, TunedPrecision::kInt8)) return "all int8";
  return precisions == all_bf16 ? "all bf16" : kLayerByLayer;
}

}  // namespace

bool Choice::KeepsPart(const Assignment& assignment) const {
  return kept_.Allows(assignment.error.value) && assignment.precisions != missed_;
}

bool Choice::Keeps(const Assignment& assignment) const {
  return KeepsPart(assignment) &&
         (!in_.spec.may_stay_exact || assignment.probability >= least_probability_);
}

void Choice::RememberUniform(const Assignment& assignment) {
  if (!IsAll(assignment.precisions, TunedPrecision::kInt8) && assignment.precisions != AllBf16())
    return;
  const auto keeps = [this](const Assignment& one) {
    return Keeps(one) + in_.spec.budget.Allows(one.error.value);
  };
  const auto before = absl::c_find_if(
      uniform_, [&](const Assignment& one) { return one.precisions == assignment.precisions; });
  if (before == uniform_.end()) return uniform_.push_back(assignment);
  const bool is_nearer = keeps(assignment) == keeps(*before) ? assignment.l2 < before->l2
                                                             : keeps(assignment) > keeps(*before);
  if (is_nearer) *before = assignment;
}

// One more trial, whatever the time: where that ended early, nothing else may keep the budget.
absl::Status Choice::MeasureAllBf16() {
  const Precisions bf16 = AllBf16();
  const bool is_known =
      absl::c_any_of(uniform_, [&](const Assignment& one) { return one.precisions == bf16; });
  if (is_known || is_stopped_ || IsAll(bf16, TunedPrecision::kExact)) return absl::OkStatus();
  Assignment all{.precisions = bf16, .methods = methods_, .corrections = corrections_};
  ABSL_RETURN_IF_ERROR(Measure(&all, static_cast<int64_t>(in_.set.chosen.size())));
  AddToCurve(all);
  Remember(all);
  if (!best_) best_ = probable_;
  return absl::OkStatus();
}

std::vector<Assignment> Choice::Entrants() const {
  Assignment exact{.precisions = Precisions(in_.layers.size(), TunedPrecision::kExact),
                   .methods = methods_};
  const std::vector<OutputFloats>& outputs = in_.exact_outputs.outputs;
  exact.error =
      ErrorOf({in_.set.chosen, outputs, outputs}, in_.spec.labels).Of(in_.spec.budget.measure());
  std::vector<Assignment> entrants = {std::move(exact), *best_};
  for (const Assignment& one : uniform_) {
    const bool is_in = one.precisions == best_->precisions;
    if (!is_in && in_.spec.budget.Allows(one.error.value)) entrants.push_back(one);
  }
  return entrants;
}

std::vector<Finalist> Choice::FinalistsWith(const Assignment* chosen) const {
  std::vector<Finalist> finalists = finalists_;
  for (size_t i = 0; i < finalists.size(); ++i)
    finalists[i].is_chosen = chosen != nullptr && entrants_[i].precisions == chosen->precisions;
  return finalists;
}

absl::Status Choice::RunFinals() {
  if (in_.spec.goal || !in_.spec.may_stay_exact) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(MeasureAllBf16());
  if (!best_) return absl::OkStatus();
  Report(kDoneByDescent, "the whole in turns: exact, all bf16, all int8, and the best so far");
  finalists_.clear();
  entrants_ = Entrants();
  std::vector<std::shared_ptr<const Model>> loaded(entrants_.size());
  std::vector<const Model*> models = {&in_.exact};
  for (size_t i = 1; i < entrants_.size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(loaded[i], Load(entrants_[i]));
    models.push_back(loaded[i].get());
  }
  ABSL_ASSIGN_OR_RETURN(const std::vector<absl::Duration> times,
                        in_.runs.TimeInTurns(models, TimePlan::kTimeOfTurns));
  const Precisions all_bf16 = AllBf16();
  for (size_t i = 0; i < entrants_.size(); ++i) {
    const Assignment& one = entrants_[i];
    // The best may not keep the margins, where time ended, and nothing surer is there.
    finalists_.push_back({.name = NameOf(one.precisions, all_bf16),
                          .time = times[i],
                          .error = one.error.value,
                          .l2 = one.l2,
                          .is_sure = i < 2 || Keeps(one)});
  }
  const size_t taken = FastestOf(finalists_);
  best_ = entrants_[taken];
  const std::optional<size_t> bolder = BolderThan(finalists_, taken);
  if (bolder) bolder_ = entrants_[*bolder];
  return absl::OkStatus();
}

}  // namespace tilewire::tuning
