// SPDX-License-Identifier: Apache-2.0
//
// The row of each layer, by measurement: which implementation of the engine's tables is the fastest
// here, in the plan of the whole model, among those that the layer's precision permits. In its
// order:
//
//   1. each row of the tables in turn, for all layers that take it: the times of their steps, in
//      turns with those of the rows that estimates choose, reorders in front of them included; and
//      whether the outputs have the same bits
//   2. each layer whose best row saves a clear part of its time takes it, all of them together;
//      they are timed again, and those that save less go, until none does. The whole must be
//      faster, and keep the budget; beyond it, only rows that left all bits as they were
//
// Thread-compatible.
#ifndef ENGINE_TUNING_ROW_CHOICE_H_
#define ENGINE_TUNING_ROW_CHOICE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/cpu/isa.h"
#include "engine/tuning/choice/choice.h"

namespace tilewire::tuning {

class RowChoice {
 public:
  struct LayerRow {
    std::string row;  // empty: that of the estimates
    bool has_same_bits = false;
    absl::Duration before, after;
  };

  // The best row of each layer alone, where all rows were tried for layers of these precisions.
  struct Measured {
    Precisions precisions;  // empty: nothing was measured
    std::vector<LayerRow> best;
  };

  // For the model of `file` with these precisions, on a CPU with `isa`. Layers that have the same
  // precision in `before` are not measured alone again.
  RowChoice(const ChoiceInputs& inputs, cpu::Isa isa, std::string file, Precisions precisions,
            Measured before = {})
      : in_(inputs),
        isa_(isa),
        file_(std::move(file)),
        precisions_(std::move(precisions)),
        before_(std::move(before)),
        rows_(inputs.layers.size()) {}

  // Ends early, with what it has, at the deadline and when the spec's `stop` is set.
  absl::Status Run();

  const std::vector<LayerRow>& rows() const { return rows_; }  // of each layer
  // LoadOptions::node_rows of the layers that take another row than estimates choose.
  std::map<std::string, std::string> NodeRows() const { return NodeRowsOf(rows_); }
  // Errors of the model with these rows, on the examples of the choice.
  struct Errors {
    MeasuredError of_budget;  // against the exact model
    double l2 = 0;
    bool has_same_bits = false;  // as the model with the rows that estimates choose
  };
  const Errors& errors() const { return errors_; }
  Measured measured() const { return is_complete_ ? Measured{precisions_, best_} : before_; }
  int64_t tried() const { return tried_; }
  bool is_stopped() const { return is_stopped_; }
  bool is_out_of_time() const { return is_out_of_time_; }

 private:
  using ModelPtr = std::shared_ptr<const Model>;
  // Times by the rows that estimates choose and by those of a model, with the rows left open.
  struct StepTimes {
    std::vector<LayerRow> layers;
    absl::Duration before, after;  // of all steps
  };

  bool IsEnding();
  std::map<std::string, std::string> NodeRowsOf(const std::vector<LayerRow>& rows) const;
  bool IsMeasuredBefore(size_t layer) const {
    return !before_.precisions.empty() && before_.precisions[layer] == precisions_[layer];
  }
  // The layers for which the row may be tried, and was not before.
  std::vector<int> LayersFor(const std::string& row, bool is_integer, Precision precision) const;
  absl::StatusOr<ModelPtr> Load(const std::map<std::string, std::string>& rows, bool tries) const;
  Errors ErrorsOf(const TrialOutputs& outputs) const;
  absl::StatusOr<Errors> Measure(const Model& model) const;
  absl::StatusOr<StepTimes> TimeInTurns(const Model& model) const;
  absl::Status Begin();
  // Notes for each of these layers whether the row is the best so far.
  absl::Status TryRow(const std::string& row, const std::vector<int>& layers);
  // Whether any of these layers take their best rows.
  absl::StatusOr<bool> TakeBest(std::vector<int> layers);
  absl::Status TryAll();

  const ChoiceInputs& in_;
  const cpu::Isa isa_;
  const std::string file_;
  const Precisions precisions_;
  const Measured before_;
  ModelPtr base_;
  TrialOutputs base_outputs_;
  std::vector<std::string> base_rows_;  // of each layer; empty: no step of its own
  std::vector<LayerRow> best_;          // of each layer, alone
  std::vector<LayerRow> rows_;
  Errors errors_;
  int64_t tried_ = 0;
  bool is_complete_ = false;  // best_
  bool is_stopped_ = false, is_out_of_time_ = false;
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_ROW_CHOICE_H_
