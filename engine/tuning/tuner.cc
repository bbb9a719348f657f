// SPDX-License-Identifier: Apache-2.0
#include "engine/tuner.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/isa.h"
#include "engine/explanation.h"
#include "engine/onnx/file/new_file.h"
#include "engine/tuning/assignment.h"
#include "engine/tuning/choice/choice.h"
#include "engine/tuning/conversions.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/file_hash.h"
#include "engine/tuning/report/answers.h"
#include "engine/tuning/report/reasons.h"
#include "engine/tuning/row_choice.h"
#include "engine/tuning/spec_checks.h"
#include "engine/tuning/time_plan.h"
#include "engine/tuning/tuned_source.h"
#include "protos/tuning.pb.h"

namespace tilewire {
namespace tuning {
namespace {

constexpr size_t kProbes = 5;  // runs that the time is planned by

void AddRowReason(const RowChoice::LayerRow& row, std::string* reason) {
  absl::StrAppendFormat(
      reason, "%sthe row %s saves %.0f of %.0f us, %s", reason->empty() ? "" : "; ", row.row,
      absl::ToDoubleMicroseconds(row.before - row.after), absl::ToDoubleMicroseconds(row.before),
      row.has_same_bits ? "with the same bits" : "with other bits");
}

// "0.56 % of 180 examples, between 0.10 % and 3.08 %; accuracy 97.8 % exact, 97.2 % tuned"
std::string HeldOutText(const TuningSpec& spec, const TuningResult& result) {
  std::string text = MeasuredText(spec.budget.measure(), result.held_out);
  if (spec.is_made_up) absl::StrAppend(&text, "; they were made up");
  if (result.accuracy) {
    const double percent = 100.0 / static_cast<double>(result.accuracy->examples);
    absl::StrAppendFormat(&text, "; accuracy %.1f %% exact, %.1f %% tuned",
                          percent * static_cast<double>(result.accuracy->exact_right),
                          percent * static_cast<double>(result.accuracy->tuned_right));
  }
  return text;
}

// One call of Tune().
class Tuning {
 public:
  Tuning(Engine* engine, const std::string& path, const TuningSpec& spec)
      : engine_(engine),
        path_(path),
        spec_(spec),
        deadline_(absl::Now() + TimePlan::AtLeast(spec.time)) {}

  absl::StatusOr<TuningResult> Run(absl::Span<const TuningExample> examples) {
    ABSL_RETURN_IF_ERROR(
        CheckSpec(spec_, examples.size(), engine_->options().max_isa & cpu::BestIsa()));
    const absl::Time start = absl::Now();
    ABSL_ASSIGN_OR_RETURN(exact_, engine_->LoadModel(path_, {.precision = Precision::kExact,
                                                             .tries_rows = spec_.chooses_rows,
                                                             .takes_tuning = false}));
    load_time_ = absl::Now() - start;
    ABSL_ASSIGN_OR_RETURN(output_, OutputOf(exact_->signature(), spec_.budget));
    ABSL_ASSIGN_OR_RETURN(const ModelSource source, ModelSource::Read(path_));
    ABSL_ASSIGN_OR_RETURN(layers_, FindLayers(source));
    FitWeightsTo(engine_->options().max_isa & cpu::BestIsa(), source, &layers_);
    ABSL_ASSIGN_OR_RETURN(
        set_, ExampleSet::Create(exact_->signature(), examples, spec_.hold_out, spec_.seed));
    ABSL_ASSIGN_OR_RETURN(runs_, NewRuns(spec_.stop));
    ABSL_RETURN_IF_ERROR(FitTheTime());
    ABSL_ASSIGN_OR_RETURN(const TrialOutputs exact, RunExact());
    const Conversions all =
        FindConversions(source, layers_, std::vector<bool>(layers_.size(), true));
    int64_t observed = 0;
    ABSL_ASSIGN_OR_RETURN(
        const Calibration calibration,
        Calibration::Observe(source, all, *runs_, set_, exact_->signature(), [&](int64_t) {
          Report(absl::StrFormat("ranges of %d tensors, %d of %d examples", all.tensors.size(),
                                 ++observed, set_.chosen.size()));
        }));
    const ChoiceInputs inputs{source,     layers_, calibration, *runs_,  set_,
                              spec_,      *exact_, exact,       output_, deadline_ - check_time_,
                              trial_time_};
    Choice choice(inputs);
    if (spec_.may_be_bf16 || spec_.may_be_int8) ABSL_RETURN_IF_ERROR(choice.Run());
    ABSL_ASSIGN_OR_RETURN(const std::optional<Candidate> found,
                          Conclude(inputs, calibration, &choice));
    TuningResult result = found ? found->result : TuningResult();
    result.exact_bytes = static_cast<int64_t>(source.bytes().size());
    TellOf(choice, calibration, found, &result);
    if (result.is_found()) result.tuning = TuningOf(source, choice, found->assignment, result);
    return result;
  }

 private:
  void Report(const std::string& text) const {
    if (spec_.progress) spec_.progress({0, text});
  }

  // An assignment with its rows, and all that is known of it once it is checked.
  struct Candidate {
    Assignment assignment;
    std::vector<RowChoice::LayerRow> rows;         // of each layer; empty: not chosen
    std::map<std::string, std::string> node_rows;  // LoadOptions::node_rows
    TuningResult result;
  };

  absl::StatusOr<std::unique_ptr<TrialRuns>> NewRuns(const std::atomic<bool>* stop) const {
    return TrialRuns::Create(engine_, &set_, spec_.scratch, stop,
                             TimePlan::MostOfTurns(spec_.time));
  }

  ExampleCounts Counts() const {
    return {static_cast<int64_t>(set_.chosen.size()), static_cast<int64_t>(set_.held_out.size())};
  }

  // Leaves as many examples as the time has room for, by the median of a few runs.
  absl::Status FitTheTime() {
    Report("the time of a run");
    const absl::Time start = absl::Now();
    std::vector<absl::Duration> times;
    absl::Duration first;
    while (times.empty() ||
           (times.size() < kProbes && absl::Now() < start + TimePlan::MostOfTurns(spec_.time))) {
      const absl::Time begin = absl::Now();
      ABSL_RETURN_IF_ERROR(
          runs_->Run(*exact_, absl::MakeConstSpan(set_.chosen).first(1), output_).status());
      const absl::Duration time = absl::Now() - begin;
      // The first run makes the plan.
      (first == absl::ZeroDuration() ? first : times.emplace_back()) = time;
    }
    const absl::Duration run = MedianOf(times);
    load_time_ += std::max(first - run, absl::ZeroDuration());
    const TimePlan plan(spec_.time, load_time_, run);
    const ExampleCounts all = Counts();
    ABSL_ASSIGN_OR_RETURN(const ExampleCounts fitting, plan.Fit(all, deadline_ - absl::Now()));
    left_out_ = all.chosen - fitting.chosen + all.held_out - fitting.held_out;
    set_.KeepOnly(fitting.chosen, fitting.held_out);
    return absl::OkStatus();
  }

  // The outputs of the exact model for the examples of the choice, and how long the check of a
  // result will take.
  absl::StatusOr<TrialOutputs> RunExact() {
    const absl::Time start = absl::Now();
    ABSL_ASSIGN_OR_RETURN(
        TrialOutputs exact, runs_->Run(*exact_, set_.chosen, output_, [this](int64_t seen) {
          Report(absl::StrFormat("the exact model, %d of %d examples", seen, set_.chosen.size()));
        }));
    const absl::Duration each =
        (absl::Now() - start) / static_cast<double>(std::max<size_t>(set_.chosen.size(), 1));
    const TimePlan plan(spec_.time, load_time_, each);
    check_time_ = plan.Check(Counts());
    trial_time_ = plan.Trial(Counts().chosen);
    ABSL_RETURN_IF_ERROR(CheckOutputs(exact, set_.chosen));
    return exact;
  }

  absl::Status CheckOutputs(const TrialOutputs& exact, absl::Span<const int64_t> examples) const {
    ABSL_RETURN_IF_ERROR(CheckExact(exact, examples, spec_.budget.measure()));
    return spec_.labels.empty() ? absl::OkStatus()
                                : CheckLabels(spec_.labels, examples, exact.outputs);
  }

  // An assignment with its rows. Without one, the exact one becomes it where rows make it faster,
  // or nothing else is permitted.
  absl::StatusOr<std::optional<Candidate>> WithRows(const ChoiceInputs& inputs,
                                                    const Calibration& calibration, Choice* choice,
                                                    const std::optional<Assignment>& assignment) {
    std::optional<Candidate> best;
    if (assignment) best = Candidate{.assignment = *assignment};
    if (!spec_.chooses_rows || choice->is_stopped() || (best && choice->IsEnding())) return best;
    Candidate tuned{{Precisions(layers_.size(), TunedPrecision::kExact),
                     std::vector<RangeMethod>(calibration.groups(), kRangeMethods[0])}};
    if (best) tuned = *best;
    ABSL_ASSIGN_OR_RETURN(std::string file, choice->FileOf(tuned.assignment));
    RowChoice rows(inputs, engine_->options().max_isa & cpu::BestIsa(), std::move(file),
                   tuned.assignment.precisions, std::move(measured_rows_));
    ABSL_RETURN_IF_ERROR(rows.Run());
    measured_rows_ = rows.measured();
    tuned.result.is_stopped = rows.is_stopped();
    tuned.result.is_out_of_time = rows.is_out_of_time();
    tuned.result.rows_tried = rows.tried();
    tuned.rows = rows.rows();
    tuned.node_rows = rows.NodeRows();
    const bool is_exact_alone = !spec_.may_be_bf16 && !spec_.may_be_int8;
    if (tuned.node_rows.empty() && !best && !is_exact_alone) return best;
    tuned.assignment.error = rows.errors().of_budget;
    tuned.assignment.l2 = rows.errors().l2;
    return tuned;
  }

  // A bolder one if it keeps the budget on the examples that are held out, or the best.
  absl::StatusOr<std::optional<Candidate>> Conclude(const ChoiceInputs& inputs,
                                                    const Calibration& calibration,
                                                    Choice* choice) {
    if (!choice->bolder()) return ConcludeBest(inputs, calibration, choice);
    ABSL_ASSIGN_OR_RETURN(std::optional<Candidate> bolder,
                          WithRows(inputs, calibration, choice, choice->bolder()));
    ABSL_RETURN_IF_ERROR(Check(choice, &*bolder));
    if (bolder->result.is_found()) return bolder;
    const MeasuredError missed = bolder->result.held_out;
    ABSL_ASSIGN_OR_RETURN(std::optional<Candidate> best, ConcludeBest(inputs, calibration, choice));
    best->result.bolder_held_out = missed;
    return best;
  }

  // Where the best misses the budget on the examples that are held out, a second one is chosen.
  absl::StatusOr<std::optional<Candidate>> ConcludeBest(const ChoiceInputs& inputs,
                                                        const Calibration& calibration,
                                                        Choice* choice) {
    ABSL_ASSIGN_OR_RETURN(std::optional<Candidate> found,
                          WithRows(inputs, calibration, choice, choice->best()));
    const bool has_best = choice->best().has_value();
    if (!found && choice->nearest()) found = Candidate{.assignment = *choice->nearest()};
    if (!found) return found;
    ABSL_RETURN_IF_ERROR(Check(choice, &*found));
    if (!has_best || found->result.is_found() || choice->IsEnding()) return found;
    ABSL_RETURN_IF_ERROR(choice->RunAgain(!found->result.keeps_budget));
    const MeasuredError first = found->result.held_out;
    found->result.first_held_out = first;
    if (!choice->best()) return found;
    ABSL_ASSIGN_OR_RETURN(std::optional<Candidate> second,
                          WithRows(inputs, calibration, choice, choice->best()));
    ABSL_RETURN_IF_ERROR(Check(choice, &*second));
    second->result.first_held_out = first;
    const bool is_worse = spec_.budget.IsWorse(second->result.held_out.value, first.value);
    return second->result.is_found() || !is_worse ? second : found;
  }

  // Errors on the examples that are held out, times and memory. A stop does not end this.
  absl::Status Check(Choice* choice, Candidate* candidate) {
    const Assignment& assignment = candidate->assignment;
    TuningResult& result = candidate->result;
    result.chosen = assignment.error;
    result.chosen_l2 = assignment.l2;
    ABSL_ASSIGN_OR_RETURN(result.model, choice->FileOf(assignment));
    result.tuned_bytes = static_cast<int64_t>(result.model.size());
    ABSL_ASSIGN_OR_RETURN(const auto runs, NewRuns(/*stop=*/nullptr));
    ABSL_ASSIGN_OR_RETURN(const auto tuned,
                          runs->Load(result.model, NodePrecisions(layers_, assignment.precisions),
                                     candidate->node_rows));
    const auto report = [this](absl::string_view model, int64_t seen) {
      if (!spec_.progress) return;
      spec_.progress({1, absl::StrFormat("the check: the %s model, %d of %d examples held out",
                                         model, seen, set_.held_out.size())});
    };
    if (exact_held_out_.outputs.empty()) {
      ABSL_ASSIGN_OR_RETURN(
          exact_held_out_,
          runs->Run(*exact_, set_.held_out, output_, [&](int64_t seen) { report("exact", seen); }));
    }
    ABSL_RETURN_IF_ERROR(CheckOutputs(exact_held_out_, set_.held_out));
    ABSL_ASSIGN_OR_RETURN(
        const TrialOutputs other,
        runs->Run(*tuned, set_.held_out, output_, [&](int64_t seen) { report("tuned", seen); }));
    Compare({set_.held_out, exact_held_out_.outputs, other.outputs}, &result);
    ABSL_RETURN_IF_ERROR(
        runs->TimeInTurns(*exact_, *tuned, &result.exact_time, &result.tuned_time));
    ABSL_ASSIGN_OR_RETURN(result.exact_memory, MemoryOf(*exact_, *runs));
    ABSL_ASSIGN_OR_RETURN(result.tuned_memory, MemoryOf(*tuned, *runs));
    result.keeps_budget =
        spec_.budget.Allows(result.held_out.value) && spec_.budget.Allows(result.chosen.value);
    result.reaches_goal = !spec_.goal || result.tuned_time * *spec_.goal <= result.exact_time;
    return absl::OkStatus();
  }

  void Compare(const OutputPairs& pairs, TuningResult* result) const {
    const OutputError error = ErrorOf(pairs, spec_.labels);
    result->held_out = error.Of(spec_.budget.measure());
    if (!HaveClasses(pairs.exact)) return;
    result->changed_share = error.Of(ErrorMeasure::kTop1Changed);
    result->changed = ChangedAnswers(pairs, spec_.labels);
    if (!spec_.labels.empty()) result->accuracy = AccuracyOf(pairs, spec_.labels);
  }

  static absl::StatusOr<ModelMemory> MemoryOf(const Model& model, const TrialRuns& runs) {
    ABSL_ASSIGN_OR_RETURN(const Explanation explanation, model.Explain({.dims = runs.FirstDims()}));
    return ModelMemory{model.HeldBytes(), explanation.activations_bytes,
                       explanation.scratchpad_bytes};
  }

  void TellOf(const Choice& choice, const Calibration& calibration,
              const std::optional<Candidate>& found, TuningResult* result) const {
    result->is_stopped |= choice.is_stopped();
    result->is_out_of_time |= choice.is_out_of_time();
    result->left_out = left_out_;
    result->tried = choice.tried();
    if (!result->is_found()) result->model.clear();
    const bool is_found = found && result->is_found();
    result->finalists = choice.FinalistsWith(is_found ? &found->assignment : nullptr);
    AddNodes(choice, calibration, found ? &*found : nullptr, result);
    result->curve = choice.curve();
    if (!is_found) return;
    const absl::Duration estimate = choice.EstimateOf(found->assignment.precisions);
    for (TriedPoint& point : result->curve) {
      point.is_chosen = point.estimate == estimate;
      if (point.is_chosen) break;
    }
  }

  void AddNodes(const Choice& choice, const Calibration& calibration, const Candidate* candidate,
                TuningResult* result) const {
    double squares = 0;
    std::map<std::string, Range> ranges;
    if (candidate != nullptr) ranges = choice.RangesOf(candidate->assignment);
    const std::string winner = UniformWinner(result->finalists);
    for (size_t i = 0; i < layers_.size(); ++i) {
      TunedNode node = Measured(choice, i);
      if (candidate != nullptr) {
        const Assignment& found = candidate->assignment;
        AddRange(ranges, calibration, found.methods, &node);
        const double error = choice.ErrorAlone(static_cast<int>(i), found.precisions[i]);
        if (error > 0) squares += error * error;
        if (result->is_found()) node.precision = found.precisions[i];
      }
      if (result->is_found() && !candidate->rows.empty()) {
        const RowChoice::LayerRow& row = candidate->rows[i];
        node.row = row.row;
        node.row_before = row.before;
        node.row_after = row.after;
      }
      node.reason = ReasonText(node, spec_, result->is_found(), winner);
      if (!node.row.empty()) AddRowReason(candidate->rows[i], &node.reason);
      result->nodes.push_back(std::move(node));
    }
    result->predicted_l2 = std::sqrt(squares);
  }

  TunedNode Measured(const Choice& choice, size_t i) const {
    const Layer& layer = layers_[i];
    TunedNode node{.node = layer.name, .op = layer.op, .input = layer.input};
    node.largest_weight = layer.largest_weight;
    node.error_alone = choice.ErrorAlone(static_cast<int>(i), TunedPrecision::kInt8);
    node.bf16_alone = choice.ErrorAlone(static_cast<int>(i), TunedPrecision::kBf16);
    if (choice.times().empty()) return node;
    node.exact_time = choice.times()[i].exact;
    node.bf16_time = choice.times()[i].bf16;
    node.int8_time = choice.times()[i].int8;
    return node;
  }

  static void AddRange(const std::map<std::string, Range>& ranges, const Calibration& calibration,
                       absl::Span<const RangeMethod> methods, TunedNode* node) {
    const int group = calibration.GroupOf(node->input);
    const auto used = ranges.find(node->input);
    const Range& range =
        used != ranges.end() ? used->second : calibration.RangeOf(group, methods[group]);
    node->low = range.low;
    node->high = range.high;
    node->range_method = std::string(NameOf(methods[group]));
  }

  std::string TuningOf(const ModelSource& source, const Choice& choice, const Assignment& found,
                       const TuningResult& result) const {
    const Corrections corrections = CorrectionsOf(found);
    tuned::ModelTuning tuning;
    tuning.set_file(std::filesystem::path(path_).filename().string());
    tuning.set_size_bytes(static_cast<int64_t>(source.bytes().size()));
    tuning.set_hash(FileHash(source.bytes()));
    for (std::string& name : cpu::FeatureNames(engine_->options().max_isa & cpu::BestIsa()))
      tuning.add_cpu_features(std::move(name));
    tuning.set_budget(spec_.budget.ToString());
    tuning.set_held_out_error(HeldOutText(spec_, result));
    tuning.set_l2(result.chosen_l2);
    tuning.set_predicted_l2(result.predicted_l2);
    for (size_t i = 0; i < result.nodes.size(); ++i) {
      const TunedNode& node = result.nodes[i];
      tuned::TunedLayer* layer = tuning.add_layer();
      layer->set_node(node.node);
      layer->set_row(node.row);
      layer->set_precision(node.precision == TunedPrecision::kInt8   ? tuned::INT8
                           : node.precision == TunedPrecision::kBf16 ? tuned::BF16
                                                                     : tuned::EXACT);
      layer->set_error_alone(node.precision == TunedPrecision::kInt8   ? node.error_alone
                             : node.precision == TunedPrecision::kBf16 ? node.bf16_alone
                                                                       : 0);
      const int largest = layers_[i].largest_weight;
      if (node.precision == TunedPrecision::kInt8 && largest != kLargestWeight)
        layer->set_largest_weight(largest);
      const auto shift = corrections.shifts.find(static_cast<int>(i));
      if (shift != corrections.shifts.end())
        layer->mutable_bias_shift()->Assign(shift->second.begin(), shift->second.end());
    }
    AddTensors(choice.RangesOf(found), corrections, &tuning);
    return tuning::TextOf(tuning);
  }

  static void AddTensors(const std::map<std::string, Range>& ranges, const Corrections& corrections,
                         tuned::ModelTuning* tuning) {
    for (const auto& [name, range] : ranges) {
      tuned::TunedTensor* tensor = tuning->add_tensor();
      tensor->set_name(name);
      tensor->set_low(range.low);
      tensor->set_high(range.high);
      for (const EqualizedTensor& equalized : corrections.tensors) {
        if (equalized.name == name)
          tensor->mutable_factor()->Assign(equalized.factors.begin(), equalized.factors.end());
      }
    }
  }

  Engine* const engine_;
  const std::string& path_;
  const TuningSpec& spec_;
  const absl::Time deadline_;
  absl::Duration load_time_;  // of a file, with its plan
  absl::Duration check_time_, trial_time_;
  int64_t left_out_ = 0;  // examples
  std::shared_ptr<const Model> exact_;
  int output_ = 0;
  std::vector<Layer> layers_;
  ExampleSet set_;
  std::unique_ptr<TrialRuns> runs_;
  TrialOutputs exact_held_out_;  // of the first check
  RowChoice::Measured measured_rows_;
};

}  // namespace
}  // namespace tuning

absl::StatusOr<TuningResult> Tune(Engine* engine, const std::string& path,
                                  absl::Span<const TuningExample> examples,
                                  const TuningSpec& spec) {
  return tuning::Tuning(engine, path, spec).Run(examples);
}

absl::string_view NameOf(TunedPrecision precision) {
  constexpr absl::string_view kNames[] = {"exact", "bf16", "int8"};
  return kNames[static_cast<int>(precision)];
}

std::string TuningFileOf(const std::string& model) {
  return (std::filesystem::path(model).parent_path() / std::string(kTuningFile)).string();
}

namespace {

absl::Status WriteBytes(const std::string& bytes, const std::string& path) {
  if (bytes.empty())
    return absl::FailedPreconditionError("no model was found that keeps the budget");
  ABSL_ASSIGN_OR_RETURN(reader::NewFile file, reader::NewFile::Create(path));
  ABSL_RETURN_IF_ERROR(file.Append(bytes.data(), static_cast<int64_t>(bytes.size())));
  ABSL_RETURN_IF_ERROR(file.Finish());
  return file.Publish(/*replaces=*/true);
}

}  // namespace

absl::Status WriteTunedModel(const TuningResult& result, const std::string& path) {
  return WriteBytes(result.model, path);
}

absl::Status WriteTuning(const TuningResult& result, const std::string& path) {
  return WriteBytes(result.tuning, path);
}

}  // namespace tilewire
