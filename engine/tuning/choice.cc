// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/choice.h"

#include <algorithm>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/explanation.h"
#include "engine/tuning/conversions.h"

namespace tilewire::tuning {
namespace {

constexpr int64_t kExamplesAlone = 16;  // that the error of a single layer is measured on
constexpr int kExplainedRuns = 15;
constexpr double kPartOfTimeAlone = 0.6;  // that single layers may take of what is left
constexpr double kClearlyFaster = 0.98;
constexpr double kBarely = 0.2;  // of its time: layers that save no more are tried without

constexpr double kDoneByMethods = 0.15, kDoneByAlone = 0.6, kDoneByDescent = 0.85;

}  // namespace

void Choice::Report(double fraction, const std::string& text) const {
  if (in_.spec.progress) in_.spec.progress({fraction, text});
}

bool Choice::IsEnding() {
  if (in_.spec.stop != nullptr && *in_.spec.stop) is_stopped_ = true;
  if (absl::Now() >= in_.deadline) is_out_of_time_ = true;
  return is_stopped_ || is_out_of_time_;
}

absl::StatusOr<std::string> Choice::FileOf(const Assignment& assignment) {
  const Conversions conversions = FindConversions(in_.source, in_.layers, assignment.is_int8);
  return writer_.Write(assignment.is_int8,
                       in_.calibration.ParamsOf(conversions.tensors, assignment.methods));
}

absl::Status Choice::Measure(Assignment* assignment, int64_t most_examples) {
  ABSL_ASSIGN_OR_RETURN(const std::string file, FileOf(*assignment));
  ABSL_ASSIGN_OR_RETURN(const auto model, in_.runs.Load(file));
  const auto examples = absl::MakeConstSpan(in_.set.chosen).subspan(0, most_examples);
  ABSL_ASSIGN_OR_RETURN(const TrialOutputs trial, in_.runs.Run(*model, examples, in_.output));
  OutputError error;
  for (size_t i = 0; i < trial.outputs.size(); ++i)
    error.Add(in_.exact_outputs.outputs[i], trial.outputs[i]);
  assignment->error = error.Of(in_.spec.budget.measure());
  assignment->l2 = error.Of(ErrorMeasure::kL2).value;
  ++tried_;
  return absl::OkStatus();
}

absl::StatusOr<bool> Choice::Try(std::vector<bool> is_int8) {
  if (!absl::c_linear_search(is_int8, true)) return true;
  Assignment assignment{.is_int8 = std::move(is_int8), .methods = methods_};
  ABSL_RETURN_IF_ERROR(Measure(&assignment, static_cast<int64_t>(in_.set.chosen.size())));
  if (!nearest_ || in_.spec.budget.IsWorse(nearest_->error.value, assignment.error.value))
    nearest_ = assignment;
  const bool keeps = kept_.Allows(assignment.error.value);
  if (keeps) best_ = std::move(assignment);
  return keeps;
}

absl::Status Choice::FindMethod() {
  std::optional<Assignment> least;
  RangeMethod method = kRangeMethods[0];
  for (RangeMethod one : kRangeMethods) {
    Report(kDoneByMethods * static_cast<double>(one) / kRangeMethods.size(),
           absl::StrCat("all layers int8, ranges by ", NameOf(one)));
    methods_.assign(in_.calibration.groups(), one);
    Assignment all{std::vector<bool>(in_.layers.size(), true), methods_};
    ABSL_RETURN_IF_ERROR(Measure(&all, static_cast<int64_t>(in_.set.chosen.size())));
    if (!least || all.l2 < least->l2) {
      least = all;
      method = one;
    }
    if (IsEnding()) break;
  }
  methods_.assign(in_.calibration.groups(), method);
  nearest_ = least;
  if (kept_.Allows(least->error.value)) best_ = least;
  return absl::OkStatus();
}

absl::Status Choice::MeasureTimes() {
  Report(kDoneByMethods, "the time of each layer");
  ABSL_ASSIGN_OR_RETURN(const std::string file, FileOf(*nearest_));
  ABSL_ASSIGN_OR_RETURN(const auto int8, in_.runs.Load(file));
  ExplainOptions options{.dims = in_.runs.FirstDims(), .runs = kExplainedRuns};
  ABSL_ASSIGN_OR_RETURN(const Explanation of_exact, in_.exact.Explain(options));
  ABSL_ASSIGN_OR_RETURN(const Explanation of_int8, int8->Explain(options));
  times_ = TimesOf(in_.layers, of_exact, of_int8);
  return absl::OkStatus();
}

double Choice::ErrorAlone(int layer) const {
  return methods_.empty() ? -1 : alone_[layer][static_cast<int>(methods_[GroupOf(layer)])];
}

absl::Duration Choice::SavedBy(int layer) const {
  return times_.empty() ? absl::ZeroDuration() : times_[layer].exact - times_[layer].int8;
}

absl::Status Choice::MeasureAlone() {
  const int layers = static_cast<int>(in_.layers.size());
  const absl::Time start = absl::Now();
  const absl::Time end = start + (in_.deadline - start) * kPartOfTimeAlone;
  int64_t trials = 0;
  for (int i = 0; i < layers && !IsEnding() && absl::Now() < end; ++i) {
    Report(kDoneByMethods + (kDoneByAlone - kDoneByMethods) * i / layers,
           absl::StrFormat("layer %d of %d alone: %s", i + 1, layers, in_.layers[i].name));
    const absl::Duration one = (absl::Now() - start) / std::max<int64_t>(trials, 1);
    const auto wanted = static_cast<double>(kRangeMethods.size() * (layers - i));
    const bool has_time = absl::Now() + one * wanted < end;
    for (RangeMethod method : kRangeMethods) {
      if (!has_time && method != methods_[GroupOf(i)]) continue;
      Assignment alone{std::vector<bool>(layers, false),
                       std::vector<RangeMethod>(methods_.size(), method)};
      alone.is_int8[i] = true;
      ABSL_RETURN_IF_ERROR(Measure(&alone, kExamplesAlone));
      ++trials;
      alone_[i][static_cast<int>(method)] = alone.l2;
    }
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

std::vector<int> Choice::Order() const {
  double sum = 0, measured = 0;
  for (size_t i = 0; i < alone_.size(); ++i) {
    const double error = ErrorAlone(static_cast<int>(i));
    if (error < 0) continue;
    sum += error;
    ++measured;
  }
  // A layer that was not measured counts as an ordinary one.
  const double ordinary = measured > 0 ? sum / measured : 1;
  const auto cost = [&](int i) {
    const double error = ErrorAlone(i) < 0 ? ordinary : ErrorAlone(i);
    const double saved = absl::ToDoubleMicroseconds(SavedBy(i));
    // Layers that save nothing come before all others.
    return std::make_pair(!times_.empty() && saved <= 0, error * error / (saved > 0 ? saved : 1));
  };
  std::vector<int> order(in_.layers.size());
  std::iota(order.begin(), order.end(), 0);
  absl::c_stable_sort(order, [&](int a, int b) { return cost(a) > cost(b); });
  return order;
}

absl::Status Choice::Descend() {
  const std::vector<int> order = Order();
  const int layers = static_cast<int>(order.size());
  const auto without = [&](int left_out) {
    std::vector<bool> is_int8(layers, true);
    for (int i = 0; i < left_out; ++i) is_int8[order[i]] = false;
    return is_int8;
  };
  Report(kDoneByAlone, "the whole");
  const std::optional<Assignment> by_one_method = best_;
  ABSL_ASSIGN_OR_RETURN(const bool all_keep, Try(without(0)));
  if (all_keep || by_one_method) {
    // All layers are int8 either way: the ranges with less error are taken.
    if (by_one_method && (!all_keep || by_one_method->l2 < best_->l2)) {
      best_ = by_one_method;
      methods_ = best_->methods;
    }
    return LeaveOutTheSlow();
  }
  int fails = 0, keeps = layers;
  while (keeps - fails > 1 && !IsEnding()) {
    const int middle = (fails + keeps) / 2;
    Report(kDoneByAlone, absl::StrFormat("the whole with %d of %d layers exact", middle, layers));
    ABSL_ASSIGN_OR_RETURN(const bool kept, Try(without(middle)));
    (kept ? keeps : fails) = middle;
  }
  ABSL_RETURN_IF_ERROR(TryAgain(order, keeps));
  return LeaveOutTheSlow();
}

absl::Status Choice::TryAgain(const std::vector<int>& order, int left_out) {
  std::vector<int> again(order.begin(), order.begin() + left_out);
  absl::c_stable_sort(again, [&](int a, int b) { return SavedBy(a) > SavedBy(b); });
  for (size_t i = 0; i < again.size() && !IsEnding(); ++i) {
    if (!times_.empty() && SavedBy(again[i]) <= absl::ZeroDuration()) continue;
    Report(kDoneByDescent, absl::StrFormat("once more with %s int8", in_.layers[again[i]].name));
    std::vector<bool> is_int8 =
        best_ ? best_->is_int8 : std::vector<bool>(in_.layers.size(), false);
    if (is_int8[again[i]]) continue;
    is_int8[again[i]] = true;
    ABSL_RETURN_IF_ERROR(Try(std::move(is_int8)).status());
  }
  return absl::OkStatus();
}

absl::Status Choice::TakeIfFaster(std::vector<bool> is_int8) {
  const Assignment before = *best_;
  if (is_int8 == before.is_int8 || !absl::c_linear_search(is_int8, true)) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const bool keeps, Try(std::move(is_int8)));
  if (!keeps) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(const std::string old_file, FileOf(before));
  ABSL_ASSIGN_OR_RETURN(const auto old_model, in_.runs.Load(old_file));
  ABSL_ASSIGN_OR_RETURN(const std::string new_file, FileOf(*best_));
  ABSL_ASSIGN_OR_RETURN(const auto new_model, in_.runs.Load(new_file));
  absl::Duration old_time, new_time;
  ABSL_RETURN_IF_ERROR(in_.runs.TimeInTurns(*old_model, *new_model, &old_time, &new_time));
  if (new_time > old_time * kClearlyFaster) best_ = before;
  return absl::OkStatus();
}

absl::Status Choice::LeaveOutTheSlow() {
  if (!best_ || times_.empty() || IsEnding()) return absl::OkStatus();
  Report(kDoneByDescent, "without layers that save no time");
  std::vector<bool> saving = best_->is_int8;
  std::vector<int> barely;
  for (int i = 0; i < static_cast<int>(saving.size()); ++i) {
    if (SavedBy(i) <= absl::ZeroDuration()) saving[i] = false;
    if (SavedBy(i) <= times_[i].exact * kBarely) barely.push_back(i);
  }
  ABSL_RETURN_IF_ERROR(TakeIfFaster(std::move(saving)));
  // Between exact layers, conversions may cost more than a layer saves among others of integers.
  absl::c_stable_sort(barely, [&](int a, int b) { return SavedBy(a) < SavedBy(b); });
  for (size_t i = 0; i < barely.size() && !IsEnding(); ++i) {
    if (!best_->is_int8[barely[i]]) continue;
    Report(kDoneByDescent, absl::StrFormat("once more without %s", in_.layers[barely[i]].name));
    std::vector<bool> without = best_->is_int8;
    without[barely[i]] = false;
    ABSL_RETURN_IF_ERROR(TakeIfFaster(std::move(without)));
  }
  return absl::OkStatus();
}

absl::Status Choice::Run() {
  const auto steps = [&]() -> absl::Status {
    ABSL_RETURN_IF_ERROR(FindMethod());
    if (IsEnding() || !in_.spec.may_stay_exact) return absl::OkStatus();
    ABSL_RETURN_IF_ERROR(MeasureTimes());
    ABSL_RETURN_IF_ERROR(MeasureAlone());
    if (IsEnding()) return absl::OkStatus();
    return Descend();
  };
  const absl::Status status = steps();
  if (absl::IsCancelled(status) && in_.spec.stop != nullptr && *in_.spec.stop) {
    is_stopped_ = true;
    return absl::OkStatus();
  }
  return status;
}

}  // namespace tilewire::tuning
