// SPDX-License-Identifier: Apache-2.0
//
// The choice where a speed is asked for: the least error that gives it. As many steps of the
// descent are taken as the whole stays fast enough, measured in turns with the exact model: their
// prefixes answer the relaxation of this knapsack, too. The room that is left is filled with single
// steps, in the same order.
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "engine/tuning/choice/choice.h"

namespace tilewire::tuning {

absl::StatusOr<bool> Choice::TakeIfFastEnough(Precisions precisions) {
  Assignment assignment{
      .precisions = std::move(precisions), .methods = methods_, .corrections = corrections_};
  ABSL_ASSIGN_OR_RETURN(const auto model, Load(assignment));
  absl::Duration exact_time, time;
  ABSL_RETURN_IF_ERROR(in_.runs.TimeInTurns(in_.exact, *model, &exact_time, &time));
  const absl::Duration room = exact_time / (*in_.spec.goal * margin_of_goal_) - time;
  const bool is_fast = room >= absl::ZeroDuration();
  if (!is_fast && best_) return false;
  ABSL_RETURN_IF_ERROR(Measure(&assignment, static_cast<int64_t>(in_.set.chosen.size())));
  AddToCurve(assignment);
  if (!best_ || assignment.l2 < best_->l2) {
    nearest_ = assignment;
    if (is_fast) best_ = std::move(assignment);
    room_ = room;
  }
  return is_fast;
}

absl::Status Choice::DescendToGoal(const std::vector<Step>& steps) {
  const auto after = [&](int taken) {
    Precisions precisions = Fastest();
    for (int i = 0; i < taken; ++i) precisions[steps[i].layer] = steps[i].to;
    return precisions;
  };
  best_.reset();
  Report(kDoneByAlone, "the whole");
  ABSL_ASSIGN_OR_RETURN(const bool can_be, TakeIfFastEnough(after(0)));
  if (!can_be) return absl::OkStatus();
  int fast = 0, slow = static_cast<int>(steps.size());  // all exact
  while (slow - fast > 1 && !IsEnding()) {
    const int middle = (fast + slow) / 2;
    Report(kDoneByAlone,
           absl::StrFormat("the whole with %d of %d steps to exact layers", middle, steps.size()));
    ABSL_ASSIGN_OR_RETURN(const bool is_fast, TakeIfFastEnough(after(middle)));
    (is_fast ? fast : slow) = middle;
  }
  for (size_t i = slow; i < steps.size() && !IsEnding(); ++i) {
    const auto [layer, to] = steps[i];
    const TunedPrecision from = best_->precisions[layer];
    if (from <= to) continue;
    if (!times_.empty() && times_[layer].Of(to) - times_[layer].Of(from) > room_) continue;
    Report(kDoneByDescent,
           absl::StrFormat("once more with %s %s", in_.layers[layer].name, NameOf(to)));
    Precisions precisions = best_->precisions;
    precisions[layer] = to;
    ABSL_RETURN_IF_ERROR(TakeIfFastEnough(std::move(precisions)).status());
  }
  return absl::OkStatus();
}

}  // namespace tilewire::tuning
