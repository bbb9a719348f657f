// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/row_choice.h"

#include <cstring>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/explanation.h"
#include "engine/primitives/primitives.h"
#include "engine/tuning/layer_times.h"

namespace tilewire::tuning {
namespace {

constexpr int kRowTurns = 3, kRunsOfTurn = 5;
constexpr int kTrialsOfWhole = 4;
constexpr double kFasterAlone = 0.97, kFasterWhole = 0.995;  // parts of the time before
constexpr double kDoneByPrecisions = 0.9;                    // of the tuning

// The row of each layer by its node's name; layers of a chain of bands are named in its remark.
absl::flat_hash_map<std::string, std::string> RowsByNode(const Explanation& explanation) {
  absl::flat_hash_map<std::string, std::string> rows;
  for (const PlanStep& step : explanation.steps) {
    const std::vector<std::string> nodes = absl::StrSplit(step.node, " + ");
    const std::vector<std::string> in_chain = absl::StrSplit(step.remark, " + ");
    const bool is_chain = nodes.size() > 1 && in_chain.size() == nodes.size();
    for (size_t i = 0; i < nodes.size(); ++i) {
      const std::string& row = is_chain ? in_chain[i] : step.implementation;
      if (row.starts_with("convolution/") || row.starts_with("inner_product/"))
        rows.emplace(nodes[i], row);
    }
  }
  return rows;
}

bool HaveSameBits(const TrialOutputs& a, const TrialOutputs& b) {
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    const std::vector<float>&x = a.outputs[i].elements, &y = b.outputs[i].elements;
    if (x.size() != y.size() || std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

bool MayBeTried(const ImplementationRow& row, cpu::Isa isa) {
  const ImplementationTraits& traits = row.traits;
  const bool is_layer =
      row.kind == PrimitiveKind::kConvolution || row.kind == PrimitiveKind::kInnerProduct;
  return is_layer && isa.Includes(row.isa) && !traits.is_reference &&
         traits.propagations.Has(PropKind::kForwardInference) &&
         (!traits.runs_another || row.has_cost);
}

}  // namespace

bool RowChoice::IsEnding() {
  if (in_.spec.stop != nullptr && *in_.spec.stop) is_stopped_ = true;
  if (absl::Now() >= in_.deadline) is_out_of_time_ = true;
  return is_stopped_ || is_out_of_time_;
}

std::map<std::string, std::string> RowChoice::NodeRowsOf(const std::vector<LayerRow>& rows) const {
  std::map<std::string, std::string> named;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].row.empty()) named[in_.layers[i].name] = rows[i].row;
  }
  return named;
}

std::vector<int> RowChoice::LayersFor(const std::string& row, bool is_integer,
                                      Precision precision) const {
  const absl::string_view kind = absl::string_view(row).substr(0, row.find('/'));
  std::vector<int> layers;
  for (size_t i = 0; i < in_.layers.size(); ++i) {
    const bool is_int8 = precisions_[i] == TunedPrecision::kInt8;
    const bool is_bf16 = precisions_[i] == TunedPrecision::kBf16;
    const bool is_permitted = precision == Precision::kExact || is_bf16;
    const std::string& now = base_rows_[i];
    const bool is_of_kind = kind == absl::string_view(now).substr(0, now.find('/'));
    // Without a name of its own, an exact layer could not be found again.
    const bool has_name =
        precisions_[i] != TunedPrecision::kExact || in_.layers[i].name == in_.layers[i].step;
    const bool fits = is_int8 == is_integer && is_permitted && is_of_kind && has_name;
    if (fits && now != row && !IsMeasuredBefore(i)) layers.push_back(static_cast<int>(i));
  }
  return layers;
}

absl::StatusOr<RowChoice::ModelPtr> RowChoice::Load(const std::map<std::string, std::string>& rows,
                                                    bool tries) const {
  return in_.runs.Load(file_, NodePrecisions(in_.layers, precisions_), rows, tries);
}

RowChoice::Errors RowChoice::ErrorsOf(const TrialOutputs& outputs) const {
  const OutputError error =
      ErrorOf({in_.set.chosen, in_.exact_outputs.outputs, outputs.outputs}, in_.spec.labels);
  return {error.Of(in_.spec.budget.measure()), error.Of(ErrorMeasure::kL2).value,
          HaveSameBits(base_outputs_, outputs)};
}

absl::StatusOr<RowChoice::Errors> RowChoice::Measure(const Model& model) const {
  ABSL_ASSIGN_OR_RETURN(const TrialOutputs outputs,
                        in_.runs.Run(model, in_.set.chosen, in_.output));
  return ErrorsOf(outputs);
}

absl::Status RowChoice::Begin() {
  ABSL_ASSIGN_OR_RETURN(base_, Load({}, /*tries=*/false));
  ABSL_ASSIGN_OR_RETURN(base_outputs_, in_.runs.Run(*base_, in_.set.chosen, in_.output));
  errors_ = ErrorsOf(base_outputs_);
  ABSL_ASSIGN_OR_RETURN(const Explanation explanation,
                        base_->Explain({.dims = in_.runs.FirstDims()}));
  const auto rows = RowsByNode(explanation);
  base_rows_.resize(in_.layers.size());
  for (size_t i = 0; i < in_.layers.size(); ++i) {
    const auto found = rows.find(in_.layers[i].name);
    if (found != rows.end()) base_rows_[i] = found->second;
  }
  best_.assign(in_.layers.size(), {});
  for (size_t i = 0; i < best_.size(); ++i) {
    // In another neighbourhood the estimates may choose that row themselves.
    if (IsMeasuredBefore(i) && before_.best[i].row != base_rows_[i]) best_[i] = before_.best[i];
  }
  return absl::OkStatus();
}

absl::Status RowChoice::TryRow(const std::string& row, const std::vector<int>& layers) {
  std::map<std::string, std::string> wanted;
  for (int layer : layers) wanted[in_.layers[layer].name] = row;
  ABSL_ASSIGN_OR_RETURN(const ModelPtr trial, Load(wanted, /*tries=*/true));
  ABSL_ASSIGN_OR_RETURN(const Explanation plan, trial->Explain({.dims = in_.runs.FirstDims()}));
  const auto rows = RowsByNode(plan);
  std::vector<int> taking;
  absl::c_copy_if(layers, std::back_inserter(taking), [&](int layer) {
    const auto found = rows.find(in_.layers[layer].name);
    return found != rows.end() && found->second == row;
  });
  if (taking.empty()) return absl::OkStatus();
  ++tried_;
  ABSL_ASSIGN_OR_RETURN(const Errors errors, Measure(*trial));
  ABSL_ASSIGN_OR_RETURN(const StepTimes times, TimeInTurns(*trial));
  for (int layer : taking) {
    LayerRow& best = best_[layer];
    LayerRow found = times.layers[layer];
    found.row = row;
    found.has_same_bits = errors.has_same_bits;
    if (found.after > found.before * kFasterAlone) continue;
    if (best.row.empty() || best.before - best.after < found.before - found.after)
      best = std::move(found);
  }
  return absl::OkStatus();
}

absl::StatusOr<RowChoice::StepTimes> RowChoice::TimeInTurns(const Model& model) const {
  const ExplainOptions options{.dims = in_.runs.FirstDims(), .runs = kRunsOfTurn};
  using Times = std::vector<std::vector<absl::Duration>>;  // of each layer, then of all steps
  Times before(in_.layers.size() + 1), after(in_.layers.size() + 1);
  for (int turn = 0; turn < kRowTurns; ++turn) {
    for (auto [timed, times] : {std::pair(base_.get(), &before), {&model, &after}}) {
      ABSL_ASSIGN_OR_RETURN(const Explanation explanation, timed->Explain(options));
      auto by_node = TimesByNode(explanation);
      for (size_t i = 0; i < in_.layers.size(); ++i)
        (*times)[i].push_back(by_node[in_.layers[i].name]);
      absl::Duration whole;
      for (const auto& [node, time] : by_node) whole += time;
      times->back().push_back(whole);
    }
  }
  StepTimes times{std::vector<LayerRow>(in_.layers.size()), MedianOf(before.back()),
                  MedianOf(after.back())};
  for (size_t i = 0; i < in_.layers.size(); ++i) {
    times.layers[i].before = MedianOf(before[i]);
    times.layers[i].after = MedianOf(after[i]);
  }
  return times;
}

absl::StatusOr<bool> RowChoice::TakeBest(std::vector<int> layers) {
  for (int trial = 0; trial < kTrialsOfWhole && !layers.empty() && !IsEnding(); ++trial) {
    std::vector<LayerRow> rows(in_.layers.size());
    for (int layer : layers) rows[layer] = best_[layer];
    ABSL_ASSIGN_OR_RETURN(const ModelPtr model, Load(NodeRowsOf(rows), /*tries=*/false));
    ABSL_ASSIGN_OR_RETURN(const Errors errors, Measure(*model));
    if (!in_.spec.budget.Allows(errors.of_budget.value)) return false;
    ABSL_ASSIGN_OR_RETURN(const StepTimes times, TimeInTurns(*model));
    std::vector<int> still;
    for (int layer : layers) {
      rows[layer].before = times.layers[layer].before;
      rows[layer].after = times.layers[layer].after;
      if (rows[layer].after <= rows[layer].before * kFasterAlone) still.push_back(layer);
    }
    if (still.size() == layers.size() && times.after <= times.before * kFasterWhole) {
      rows_ = std::move(rows);
      errors_ = errors;
      return true;
    }
    if (still.size() == layers.size()) return false;
    layers = std::move(still);
  }
  return false;
}

absl::Status RowChoice::TryAll() {
  ABSL_RETURN_IF_ERROR(Begin());
  std::set<std::string> seen;
  for (const ImplementationRow& row : AllImplementations()) {
    if (IsEnding()) return absl::OkStatus();
    const std::string name(row.name);
    if (!MayBeTried(row, isa_) || !seen.insert(name).second) continue;
    const std::vector<int> layers = LayersFor(name, row.traits.is_integer, row.traits.precision);
    if (layers.empty()) continue;
    if (in_.spec.progress) in_.spec.progress({kDoneByPrecisions, absl::StrCat("the row ", name)});
    ABSL_RETURN_IF_ERROR(TryRow(name, layers));
  }
  is_complete_ = true;
  std::vector<int> all, with_same_bits;
  for (size_t i = 0; i < best_.size(); ++i) {
    if (best_[i].row.empty()) continue;
    all.push_back(static_cast<int>(i));
    if (best_[i].has_same_bits) with_same_bits.push_back(static_cast<int>(i));
  }
  ABSL_ASSIGN_OR_RETURN(const bool is_taken, TakeBest(all));
  if (is_taken || with_same_bits.size() == all.size()) return absl::OkStatus();
  return TakeBest(with_same_bits).status();
}

absl::Status RowChoice::Run() {
  const absl::Status status = TryAll();
  if (!absl::IsCancelled(status) || in_.spec.stop == nullptr || !*in_.spec.stop) return status;
  is_stopped_ = true;
  return absl::OkStatus();
}

}  // namespace tilewire::tuning
