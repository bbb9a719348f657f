// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/choice/choice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/explanation.h"
#include "engine/tuning/conversions.h"

namespace tilewire::tuning {
namespace {

constexpr int kExplainedRuns = 5, kExplainedRounds = 3;
constexpr double kPartOfTimeAlone = 0.6;       // that single layers may take of what is left
constexpr double kPartOfTimeCorrecting = 0.5;  // that trials of corrections may take of the rest
constexpr double kClearlyFaster = 0.98;
constexpr double kBarely = 0.2;  // of its time: layers that save no more are tried without

bool IsAllExact(const Precisions& precisions) {
  return absl::c_all_of(
      precisions, [](TunedPrecision precision) { return precision == TunedPrecision::kExact; });
}

}  // namespace

void Choice::Report(double fraction, const std::string& text) const {
  if (in_.spec.progress) in_.spec.progress({std::max(fraction, done_before_), text});
}

bool Choice::IsEnding() {
  if (in_.spec.stop != nullptr && *in_.spec.stop) is_stopped_ = true;
  if (absl::Now() + in_.trial_time >= in_.deadline) is_out_of_time_ = true;
  return is_stopped_ || is_out_of_time_;
}

std::map<std::string, Range> Choice::RangesOf(const Assignment& assignment) const {
  const Conversions conversions =
      FindConversions(in_.source, in_.layers, IsInt8(assignment.precisions));
  return tuning::RangesOf(assignment, conversions, in_.calibration);
}

absl::StatusOr<std::string> Choice::FileOf(const Assignment& assignment) {
  return writer_.Write(assignment.precisions, ParamsOf(RangesOf(assignment)),
                       CorrectionsOf(assignment));
}

absl::StatusOr<std::shared_ptr<const Model>> Choice::Load(const Assignment& assignment) {
  ABSL_ASSIGN_OR_RETURN(const std::string file, FileOf(assignment));
  return in_.runs.Load(file, NodePrecisions(in_.layers, assignment.precisions));
}

absl::Status Choice::Measure(Assignment* assignment, int64_t most_examples) {
  ABSL_ASSIGN_OR_RETURN(const auto model, Load(*assignment));
  const auto examples = absl::MakeConstSpan(in_.set.chosen).subspan(0, most_examples);
  ABSL_ASSIGN_OR_RETURN(const TrialOutputs trial, in_.runs.Run(*model, examples, in_.output));
  const ErrorMeasure measure = in_.spec.budget.measure();
  const std::vector<OutputFloats>& exact = in_.exact_outputs.outputs;
  const OutputError error = ErrorOf({examples, exact, trial.outputs}, in_.spec.labels);
  assignment->error = error.Of(measure);
  assignment->l2 = error.Of(ErrorMeasure::kL2).value;
  // Counts of places of one example are not independent: they have no interval, either.
  if (assignment->error.interval) {
    std::vector<OutputFloats> stretched;
    for (size_t i = 0; i < trial.outputs.size(); ++i)
      stretched.push_back(Stretched(exact[i], trial.outputs[i]));
    assignment->probability =
        ProbabilityToKeep(ErrorOf({examples, exact, stretched}, in_.spec.labels).CountsOf(measure),
                          static_cast<int64_t>(trial.outputs.size()),
                          static_cast<int64_t>(in_.set.held_out.size()), in_.spec.budget.limit());
  }
  ++tried_;
  return absl::OkStatus();
}

absl::Duration Choice::EstimateOf(const Precisions& precisions) const {
  absl::Duration estimate = beside_layers_;
  for (size_t i = 0; i < times_.size(); ++i) estimate += times_[i].Of(precisions[i]);
  return estimate;
}

void Choice::AddToCurve(const Assignment& assignment) {
  if (times_.empty()) return;
  curve_.push_back(
      {.error = assignment.error.value, .estimate = EstimateOf(assignment.precisions)});
}

void Choice::Remember(const Assignment& assignment) {
  if (!nearest_ || in_.spec.budget.IsWorse(nearest_->error.value, assignment.error.value))
    nearest_ = assignment;
  if (KeepsPart(assignment) && (!probable_ || assignment.probability > probable_->probability))
    probable_ = assignment;
  RememberUniform(assignment);
}

absl::StatusOr<bool> Choice::Try(Precisions precisions) {
  if (IsAllExact(precisions)) return true;
  Assignment assignment{
      .precisions = std::move(precisions), .methods = methods_, .corrections = corrections_};
  ABSL_RETURN_IF_ERROR(Measure(&assignment, static_cast<int64_t>(in_.set.chosen.size())));
  AddToCurve(assignment);
  Remember(assignment);
  const bool keeps = Keeps(assignment);
  if (keeps) best_ = std::move(assignment);
  return keeps;
}

absl::Status Choice::FindMethod() {
  const TunedPrecision first = in_.spec.may_be_int8 ? TunedPrecision::kInt8 : TunedPrecision::kBf16;
  std::optional<Assignment> least;
  RangeMethod method = kRangeMethods[0];
  for (RangeMethod one : kRangeMethods) {
    Report(kDoneByMethods * static_cast<double>(one) / kRangeMethods.size(),
           in_.spec.may_be_int8 ? absl::StrCat("all layers int8, ranges by ", NameOf(one))
                                : "all layers bf16");
    methods_.assign(in_.calibration.groups(), one);
    Assignment all{.precisions = Precisions(in_.layers.size(), first), .methods = methods_};
    ABSL_RETURN_IF_ERROR(Measure(&all, static_cast<int64_t>(in_.set.chosen.size())));
    if (!least || all.l2 < least->l2) {
      least = all;
      method = one;
    }
    if (IsEnding() || !in_.spec.may_be_int8) break;
  }
  methods_.assign(in_.calibration.groups(), method);
  Remember(*least);
  if (Keeps(*least)) best_ = least;
  return absl::OkStatus();
}

// In turns: a moment in which the machine does something else costs one precision no more than
// another, and the least time of each step does without it.
absl::Status Choice::MeasureTimes() {
  Report(kDoneByMethods, "the time of each layer");
  std::map<TunedPrecision, std::shared_ptr<const Model>> uniform;
  for (TunedPrecision all : {TunedPrecision::kBf16, TunedPrecision::kInt8}) {
    const bool is_bf16 = all == TunedPrecision::kBf16;
    if (!(is_bf16 ? in_.spec.may_be_bf16 : in_.spec.may_be_int8)) continue;
    ABSL_ASSIGN_OR_RETURN(uniform[all], Load({.precisions = Precisions(in_.layers.size(), all),
                                              .methods = methods_}));
  }
  const ExplainOptions options{.dims = in_.runs.FirstDims(), .runs = kExplainedRuns};
  std::map<TunedPrecision, Explanation> least;
  for (int round = 0; round < kExplainedRounds && (round == 0 || !IsEnding()); ++round) {
    ABSL_ASSIGN_OR_RETURN(Explanation exact, in_.exact.Explain(options));
    TakeLeast(std::move(exact), &least[TunedPrecision::kExact]);
    for (const auto& [all, model] : uniform) {
      ABSL_ASSIGN_OR_RETURN(Explanation explanation, model->Explain(options));
      TakeLeast(std::move(explanation), &least[all]);
    }
  }
  const auto times_of = [&](TunedPrecision all) {
    return uniform.contains(all) ? &least[all] : nullptr;
  };
  const Explanation& exact = least[TunedPrecision::kExact];
  times_ =
      TimesOf(in_.layers, exact, times_of(TunedPrecision::kBf16), times_of(TunedPrecision::kInt8));
  beside_layers_ = exact.run;
  for (const LayerTime& time : times_) beside_layers_ -= time.exact;
  return absl::OkStatus();
}

double Choice::ErrorAlone(int layer, TunedPrecision precision) const {
  if (precision == TunedPrecision::kExact) return 0;
  if (precision == TunedPrecision::kBf16) return bf16_alone_[layer];
  return methods_.empty() ? -1 : alone_[layer][static_cast<int>(methods_[GroupOf(layer)])];
}

absl::StatusOr<double> Choice::MeasureAlone(int layer, TunedPrecision precision,
                                            RangeMethod method) {
  Assignment alone{.precisions = Precisions(in_.layers.size(), TunedPrecision::kExact),
                   .methods = std::vector<RangeMethod>(methods_.size(), method)};
  alone.precisions[layer] = precision;
  ABSL_RETURN_IF_ERROR(Measure(&alone, kExamplesAlone));
  return alone.l2;
}

absl::Status Choice::MeasureAlone() {
  const int layers = static_cast<int>(in_.layers.size());
  const absl::Time start = absl::Now();
  const absl::Time end = start + (in_.deadline - start) * kPartOfTimeAlone;
  const size_t most = (in_.spec.may_be_int8 ? kRangeMethods.size() : 0) + in_.spec.may_be_bf16;
  int64_t trials = 0;
  for (int i = 0; i < layers && !IsEnding() && absl::Now() < end; ++i) {
    Report(kDoneByMethods + (kDoneByAlone - kDoneByMethods) * i / layers,
           absl::StrFormat("layer %d of %d alone: %s", i + 1, layers, in_.layers[i].name));
    const absl::Duration one = (absl::Now() - start) / std::max<int64_t>(trials, 1);
    const bool has_time = absl::Now() + one * static_cast<double>(most * (layers - i)) < end;
    const RangeMethod usual = methods_[GroupOf(i)];
    for (RangeMethod method : kRangeMethods) {
      if (!in_.spec.may_be_int8 || (!has_time && method != usual) || IsEnding()) continue;
      ABSL_ASSIGN_OR_RETURN(alone_[i][static_cast<int>(method)],
                            MeasureAlone(i, TunedPrecision::kInt8, method));
      ++trials;
    }
    if (!in_.spec.may_be_bf16) continue;
    ABSL_ASSIGN_OR_RETURN(bf16_alone_[i], MeasureAlone(i, TunedPrecision::kBf16, usual));
    ++trials;
  }
  TakeMethods();
  return absl::OkStatus();
}

void Choice::TakeMethods() {
  std::vector<ErrorsByMethod> squares(methods_.size());
  std::vector<bool> is_whole(methods_.size(), true);
  for (size_t i = 0; i < alone_.size(); ++i) {
    const int group = GroupOf(static_cast<int>(i));
    for (size_t m = 0; m < kRangeMethods.size(); ++m) {
      if (alone_[i][m] < 0) is_whole[group] = false;
      squares[group][m] += alone_[i][m] * alone_[i][m];
    }
  }
  for (size_t group = 0; group < methods_.size(); ++group) {
    if (!is_whole[group]) continue;
    const ErrorsByMethod& of_group = squares[group];
    const auto least = std::min_element(of_group.begin(), of_group.end()) - of_group.begin();
    if (of_group[least] < of_group[static_cast<int>(methods_[group])])
      methods_[group] = kRangeMethods[least];
  }
}

Precisions Choice::Fastest() const {
  Precisions fastest(in_.layers.size(), TunedPrecision::kExact);
  for (size_t i = 0; i < fastest.size(); ++i) {
    if (MayBeBf16(static_cast<int>(i))) fastest[i] = TunedPrecision::kBf16;
    if (in_.spec.may_be_int8) fastest[i] = TunedPrecision::kInt8;
  }
  return fastest;
}

TunedPrecision Choice::MoreExact(int layer, TunedPrecision precision) const {
  const bool may_be_bf16 = precision == TunedPrecision::kInt8 && MayBeBf16(layer);
  const bool is_faster = may_be_bf16 && !times_.empty() && times_[layer].bf16 < times_[layer].exact;
  return is_faster ? TunedPrecision::kBf16 : TunedPrecision::kExact;
}

absl::Duration Choice::SavedBy(int layer, TunedPrecision precision) const {
  if (times_.empty()) return absl::ZeroDuration();
  return times_[layer].Of(MoreExact(layer, precision)) - times_[layer].Of(precision);
}

void Choice::AddSteps(int layer, double ordinary_square,
                      std::vector<std::pair<double, Step>>* steps) const {
  const auto square = [&](TunedPrecision precision) {
    const double error = ErrorAlone(layer, precision);
    return error < 0 ? ordinary_square : error * error;
  };
  // The square of the error that a step removes over the time that it costs.
  const auto worth = [&](TunedPrecision from, TunedPrecision to) {
    const double removed = square(from) - square(to);
    if (times_.empty()) return removed;
    const double cost = absl::ToDoubleMicroseconds(times_[layer].Of(to) - times_[layer].Of(from));
    return cost > 0 || removed <= 0 ? removed / std::max(cost, 1e-3)
                                    : std::numeric_limits<double>::infinity();
  };
  using enum TunedPrecision;
  const TunedPrecision from = Fastest()[layer];
  if (from == kExact) return;
  const bool has_two_steps =
      from == kInt8 && MayBeBf16(layer) && worth(kInt8, kBf16) >= worth(kBf16, kExact);
  if (!has_two_steps) return steps->push_back({worth(from, kExact), {layer, kExact}});
  steps->push_back({worth(kInt8, kBf16), {layer, kBf16}});
  steps->push_back({worth(kBf16, kExact), {layer, kExact}});
}

std::vector<Choice::Step> Choice::Steps() const {
  const TunedPrecision first = in_.spec.may_be_int8 ? TunedPrecision::kInt8 : TunedPrecision::kBf16;
  double sum = 0, measured = 0;
  for (size_t i = 0; i < alone_.size(); ++i) {
    const double error = ErrorAlone(static_cast<int>(i), first);
    if (error < 0) continue;
    sum += error;
    ++measured;
  }
  // A layer that was not measured counts as an ordinary one.
  const double ordinary = measured > 0 ? sum / measured : 1;
  std::vector<std::pair<double, Step>> found;
  for (size_t i = 0; i < in_.layers.size(); ++i)
    AddSteps(static_cast<int>(i), ordinary * ordinary, &found);
  absl::c_stable_sort(found, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Step> steps;
  for (const auto& [worth, step] : found) steps.push_back(step);
  return steps;
}

absl::Status Choice::Descend() {
  const std::vector<Step> steps = Steps();
  if (in_.spec.goal) return DescendToGoal(steps);
  const auto after = [&](int taken) {
    Precisions precisions = Fastest();
    for (int i = 0; i < taken; ++i) precisions[steps[i].layer] = steps[i].to;
    return precisions;
  };
  Report(kDoneByAlone, "the whole");
  const std::optional<Assignment> by_one_method = best_;
  ABSL_ASSIGN_OR_RETURN(const bool all_keep, Try(after(0)));
  if (all_keep || by_one_method) {
    // All layers are as fast as can be either way: the ranges with less error are taken.
    if (by_one_method && (!all_keep || by_one_method->l2 < best_->l2)) {
      best_ = by_one_method;
      methods_ = best_->methods;
      corrections_ = nullptr;
    }
    ABSL_RETURN_IF_ERROR(TryAllBf16());
    return LeaveOutTheSlow();
  }
  int fails = 0, keeps = static_cast<int>(steps.size());
  while (keeps - fails > 1 && !IsEnding()) {
    const int middle = (fails + keeps) / 2;
    Report(kDoneByAlone,
           absl::StrFormat("the whole with %d of %d steps to exact layers", middle, steps.size()));
    ABSL_ASSIGN_OR_RETURN(const bool kept, Try(after(middle)));
    (kept ? keeps : fails) = middle;
  }
  ABSL_RETURN_IF_ERROR(TryAllBf16());
  ABSL_RETURN_IF_ERROR(TryRegions());
  ABSL_RETURN_IF_ERROR(TryAgain({steps.begin(), steps.begin() + keeps}));
  return LeaveOutTheSlow();
}

absl::Status Choice::TryAgain(const std::vector<Step>& steps) {
  const Precisions fastest = Fastest();
  std::vector<int> again;
  for (const Step& step : steps) {
    if (!absl::c_linear_search(again, step.layer)) again.push_back(step.layer);
  }
  absl::c_stable_sort(
      again, [&](int a, int b) { return SavedBy(a, fastest[a]) > SavedBy(b, fastest[b]); });
  for (int layer : again) {
    for (TunedPrecision wanted : {fastest[layer], MoreExact(layer, fastest[layer])}) {
      const Precisions now =
          best_ ? best_->precisions : Precisions(fastest.size(), TunedPrecision::kExact);
      if (IsEnding() || wanted <= now[layer]) break;  // it is as fast already
      if (!times_.empty() && SavedBy(layer, wanted) <= absl::ZeroDuration()) continue;
      Report(kDoneByDescent,
             absl::StrFormat("once more with %s %s", in_.layers[layer].name, NameOf(wanted)));
      Precisions faster = now;
      faster[layer] = wanted;
      // Its layers are faster, and more conversions may take that away.
      ABSL_RETURN_IF_ERROR(best_ ? TakeIfFaster(std::move(faster))
                                 : Try(std::move(faster)).status());
    }
  }
  return absl::OkStatus();
}

absl::Status Choice::TakeIfFaster(Precisions precisions) {
  const Assignment before = *best_;
  if (precisions == before.precisions || IsAllExact(precisions)) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const bool keeps, Try(std::move(precisions)));
  if (!keeps) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const auto old_model, Load(before));
  ABSL_ASSIGN_OR_RETURN(const auto new_model, Load(*best_));
  absl::Duration old_time, new_time;
  ABSL_RETURN_IF_ERROR(in_.runs.TimeInTurns(*old_model, *new_model, &old_time, &new_time));
  if (new_time > old_time * kClearlyFaster) best_ = before;
  return absl::OkStatus();
}

absl::Status Choice::TryRegion(bool is_front_exact) {
  const Precisions fastest = Fastest();
  const int layers = static_cast<int>(fastest.size());
  const auto with = [&](int more_exact) {
    Precisions region = fastest;
    for (int i = 0; i < more_exact; ++i) {
      const int layer = is_front_exact ? i : layers - 1 - i;
      region[layer] = MoreExact(layer, fastest[layer]);
    }
    return region;
  };
  int fails = 0, keeps = layers;
  while (keeps - fails > 1 && !IsEnding()) {
    const int middle = (fails + keeps) / 2;
    Assignment region{.precisions = with(middle), .methods = methods_, .corrections = corrections_};
    ABSL_RETURN_IF_ERROR(Measure(&region, static_cast<int64_t>(in_.set.chosen.size())));
    AddToCurve(region);
    (Keeps(region) ? keeps : fails) = middle;
  }
  return TakeIfFaster(with(keeps));
}

Precisions Choice::AllBf16() const {
  Precisions bf16(in_.layers.size(), TunedPrecision::kExact);
  for (int i = 0; i < static_cast<int>(bf16.size()); ++i) {
    if (MayBeBf16(i)) bf16[i] = TunedPrecision::kBf16;
  }
  return bf16;
}

absl::Status Choice::TryAllBf16() {
  if (!best_ || !in_.spec.may_be_bf16 || IsEnding()) return absl::OkStatus();
  return TakeIfFaster(AllBf16());
}

absl::Status Choice::TryRegions() {
  if (!in_.spec.may_be_int8 || !best_) return absl::OkStatus();
  for (bool is_front_exact : {true, false}) {
    if (IsEnding()) return absl::OkStatus();
    Report(kDoneByDescent,
           absl::StrCat("the whole but for its ", is_front_exact ? "first" : "last", " layers"));
    ABSL_RETURN_IF_ERROR(TryRegion(is_front_exact));
  }
  return absl::OkStatus();
}

absl::Status Choice::LeaveOutTheSlow() {
  if (!best_ || times_.empty() || IsEnding()) return absl::OkStatus();
  Report(kDoneByDescent, "without layers that save no time");
  const Precisions start = best_->precisions;
  const auto saved = [&](int i) { return SavedBy(i, start[i]); };
  Precisions saving = start;
  std::vector<int> barely;
  for (int i = 0; i < static_cast<int>(start.size()); ++i) {
    if (start[i] == TunedPrecision::kExact) continue;
    const TunedPrecision other = MoreExact(i, start[i]);
    if (saved(i) <= absl::ZeroDuration()) saving[i] = other;
    if (saved(i) <= times_[i].Of(other) * kBarely) barely.push_back(i);
  }
  ABSL_RETURN_IF_ERROR(TakeIfFaster(std::move(saving)));
  // Between exact layers, conversions may cost more than a layer saves among others of integers.
  absl::c_stable_sort(barely, [&](int a, int b) { return saved(a) < saved(b); });
  for (size_t i = 0; i < barely.size() && !IsEnding(); ++i) {
    const int layer = barely[i];
    if (best_->precisions[layer] != start[layer]) continue;
    Report(kDoneByDescent, absl::StrFormat("once more without %s", in_.layers[layer].name));
    Precisions without = best_->precisions;
    without[layer] = MoreExact(layer, start[layer]);
    ABSL_RETURN_IF_ERROR(TakeIfFaster(std::move(without)));
  }
  return absl::OkStatus();
}

absl::Status Choice::UntilStopped(absl::FunctionRef<absl::Status()> choose) {
  const absl::Status status = choose();
  if (!best_ && !in_.spec.goal) best_ = probable_;
  if (absl::IsCancelled(status) && in_.spec.stop != nullptr && *in_.spec.stop) {
    is_stopped_ = true;
    return absl::OkStatus();
  }
  return status;
}

absl::Status Choice::Run() {
  ABSL_RETURN_IF_ERROR(UntilStopped([&]() -> absl::Status {
    ABSL_RETURN_IF_ERROR(FindMethod());
    end_of_corrections_ = in_.deadline;
    if (!in_.spec.may_stay_exact) return FindCorrections();
    if (IsEnding()) return absl::OkStatus();
    ABSL_RETURN_IF_ERROR(MeasureTimes());
    ABSL_RETURN_IF_ERROR(MeasureAlone());
    end_of_corrections_ = absl::Now() + (in_.deadline - absl::Now()) * kPartOfTimeCorrecting;
    ABSL_RETURN_IF_ERROR(FindCorrections());
    if (IsEnding()) return absl::OkStatus();
    return Descend();
  }));
  return UntilStopped([&] { return RunFinals(); });
}

absl::Status Choice::RunAgain(bool misses_budget) {
  if (!in_.spec.may_stay_exact || IsEnding()) return absl::OkStatus();
  if (misses_budget) missed_ = best_->precisions;
  kept_ = in_.spec.budget.Part(kPartOfBudgetAgain);
  least_probability_ = kLeastProbabilityAgain;
  margin_of_goal_ = kMarginOfGoalAgain;
  best_.reset();
  probable_.reset();
  bolder_.reset();
  done_before_ = 1;
  ABSL_RETURN_IF_ERROR(UntilStopped([&] { return Descend(); }));
  return UntilStopped([&] { return RunFinals(); });
}

}  // namespace tilewire::tuning
