// SPDX-License-Identifier: Apache-2.0
#include "engine/tuner.h"

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/isa.h"
#include "engine/onnx/file/new_file.h"
#include "engine/tuning/assignment.h"
#include "engine/tuning/choice.h"
#include "engine/tuning/conversions.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/file_hash.h"
#include "engine/tuning/row_choice.h"
#include "engine/tuning/tuned_source.h"
#include "protos/tuning.pb.h"

namespace tilewire {
namespace tuning {
namespace {

// The output that the budget is of.
absl::StatusOr<int> OutputOf(const ModelSignature& signature, const ErrorBudget& budget) {
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const TensorSpec& output = signature.outputs[i];
    if (!budget.output().empty() && output.name != budget.output()) continue;
    if (output.type != DataType::kF32) {
      return InvalidArgument("output '", output.name, "' is of ", DataTypeName(output.type),
                             "; a budget is of an output of f32");
    }
    if (budget.measure() == ErrorMeasure::kTop1Changed && !output.any_rank &&
        (output.dims.size() < 2 || output.dims[1] == 1)) {
      return InvalidArgument("output '", output.name, "' is of shape ", ShapeText(output),
                             ", which has no classes along dimension 1 for top1_changed");
    }
    return static_cast<int>(i);
  }
  const std::string names =
      absl::StrJoin(signature.outputs, ", ", [](std::string* text, const TensorSpec& output) {
        absl::StrAppend(text, "'", output.name, "'");
      });
  return InvalidArgument("the model has no output '", budget.output(), "'; it has ", names);
}

absl::Status CheckExact(const TrialOutputs& exact, absl::Span<const int64_t> examples,
                        ErrorMeasure measure) {
  for (size_t i = 0; i < exact.outputs.size(); ++i) {
    const Dims& dims = exact.outputs[i].dims;
    if (measure == ErrorMeasure::kTop1Changed && (dims.size() < 2 || dims[1] < 2)) {
      return InvalidArgument("the exact model gives ", DimsToString(dims), " for example ",
                             examples[i],
                             ", which has no classes along dimension 1 for top1_changed");
    }
    for (float element : exact.outputs[i].elements) {
      if (std::isfinite(element)) continue;
      return InvalidArgument("the exact model gives ", element, " for example ", examples[i],
                             ": no error can be told from that");
    }
  }
  return absl::OkStatus();
}

// "int8 saves 30 us at an l2 of 1.2e-03 alone"
std::string SavingText(TunedPrecision precision, absl::Duration exact, absl::Duration time,
                       double error) {
  const double saved = absl::ToDoubleMicroseconds(exact - time);
  const std::string error_text = error < 0 ? ", its error alone was not measured"
                                           : absl::StrFormat(", at an l2 of %.1e alone", error);
  if (time == absl::ZeroDuration())
    return absl::StrCat("the time of ", NameOf(precision), " was not measured", error_text);
  return absl::StrCat(NameOf(precision), saved > 0 ? " saves " : " costs ",
                      absl::StrFormat("%.0f us", std::fabs(saved)), saved > 0 ? "" : " more",
                      error_text);
}

std::string ReasonText(const TunedNode& node, const TuningSpec& spec) {
  std::string text;
  if (spec.may_be_int8) {
    text = SavingText(TunedPrecision::kInt8, node.exact_time, node.int8_time, node.error_alone);
  }
  if (!spec.may_be_bf16) return text;
  if (node.bf16_alone == 0)
    return absl::StrCat(text, text.empty() ? "" : "; ", "bf16 changes nothing");
  return absl::StrCat(
      text, text.empty() ? "" : "; ",
      SavingText(TunedPrecision::kBf16, node.exact_time, node.bf16_time, node.bf16_alone));
}

void AddRowReason(const RowChoice::LayerRow& row, std::string* reason) {
  absl::StrAppendFormat(
      reason, "%sthe row %s saves %.0f of %.0f us, %s", reason->empty() ? "" : "; ", row.row,
      absl::ToDoubleMicroseconds(row.before - row.after), absl::ToDoubleMicroseconds(row.before),
      row.has_same_bits ? "with the same bits" : "with other bits");
}

absl::Status CheckPrecisions(const TuningSpec& spec, cpu::Isa isa) {
  if (!spec.may_be_bf16 && !spec.may_be_int8 && !spec.chooses_rows)
    return InvalidArgument("neither bf16 nor int8 is permitted: nothing would change");
  if (!spec.may_be_bf16 || isa.Includes(cpu::Isa::kAvx512Bf16)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "bf16 needs a CPU with products of it (avx512_bf16); this one has ", cpu::IsaName(isa)));
}

// One call of Tune().
class Tuning {
 public:
  Tuning(Engine* engine, const std::string& path, const TuningSpec& spec)
      : engine_(engine), path_(path), spec_(spec), deadline_(absl::Now() + spec.time) {}

  absl::StatusOr<TuningResult> Run(absl::Span<const TuningExample> examples) {
    ABSL_RETURN_IF_ERROR(CheckPrecisions(spec_, engine_->options().max_isa & cpu::BestIsa()));
    ABSL_ASSIGN_OR_RETURN(exact_, engine_->LoadModel(path_, {.precision = Precision::kExact,
                                                             .tries_rows = spec_.chooses_rows,
                                                             .takes_tuning = false}));
    ABSL_ASSIGN_OR_RETURN(output_, OutputOf(exact_->signature(), spec_.budget));
    ABSL_ASSIGN_OR_RETURN(const ModelSource source, ModelSource::Read(path_));
    ABSL_ASSIGN_OR_RETURN(layers_, FindLayers(source));
    ABSL_ASSIGN_OR_RETURN(
        set_, ExampleSet::Create(exact_->signature(), examples, spec_.hold_out, spec_.seed));
    ABSL_ASSIGN_OR_RETURN(runs_, TrialRuns::Create(engine_, &set_, spec_.scratch, spec_.stop));
    Report("the exact model");
    ABSL_ASSIGN_OR_RETURN(const TrialOutputs exact, runs_->Run(*exact_, set_.chosen, output_));
    ABSL_RETURN_IF_ERROR(CheckExact(exact, set_.chosen, spec_.budget.measure()));
    const Conversions all =
        FindConversions(source, layers_, std::vector<bool>(layers_.size(), true));
    int64_t observed = 0;
    ABSL_ASSIGN_OR_RETURN(
        const Calibration calibration,
        Calibration::Observe(source, all, *runs_, set_, exact_->signature(), [&](int64_t) {
          Report(absl::StrFormat("ranges of %d tensors, %d of %d examples", all.tensors.size(),
                                 ++observed, set_.chosen.size()));
        }));
    const ChoiceInputs inputs{source, layers_, calibration, *runs_,  set_,
                              spec_,  *exact_, exact,       output_, deadline_};
    Choice choice(inputs);
    if (spec_.may_be_bf16 || spec_.may_be_int8) ABSL_RETURN_IF_ERROR(choice.Run());
    TuningResult result;
    result.exact_bytes = static_cast<int64_t>(source.bytes().size());
    std::optional<Assignment> best = choice.best();
    ABSL_RETURN_IF_ERROR(ChooseRows(inputs, &choice, calibration, &best, &result));
    ABSL_RETURN_IF_ERROR(Conclude(&choice, calibration, best, &result));
    if (result.keeps_budget) result.tuning = TuningOf(source, choice, *best, result);
    return result;
  }

 private:
  void Report(const std::string& text) const {
    if (spec_.progress) spec_.progress({0, text});
  }

  // Without a best assignment, the exact one becomes it where rows make it faster, or nothing else
  // is permitted.
  absl::Status ChooseRows(const ChoiceInputs& inputs, Choice* choice,
                          const Calibration& calibration, std::optional<Assignment>* best,
                          TuningResult* result) {
    if (!spec_.chooses_rows || choice->is_stopped()) return absl::OkStatus();
    Assignment tuned{.precisions = Precisions(layers_.size(), TunedPrecision::kExact),
                     .methods = std::vector<RangeMethod>(calibration.groups(), kRangeMethods[0])};
    if (*best) tuned = **best;
    ABSL_ASSIGN_OR_RETURN(std::string file, choice->FileOf(tuned));
    RowChoice rows(inputs, engine_->options().max_isa & cpu::BestIsa(), std::move(file),
                   tuned.precisions);
    ABSL_RETURN_IF_ERROR(rows.Run());
    result->is_stopped = rows.is_stopped();
    result->is_out_of_time = rows.is_out_of_time();
    result->rows_tried = rows.tried();
    rows_ = rows.rows();
    node_rows_ = rows.NodeRows();
    const bool is_exact_alone = !spec_.may_be_bf16 && !spec_.may_be_int8;
    if (node_rows_.empty() && !*best && !is_exact_alone) return absl::OkStatus();
    tuned.error = rows.errors().of_budget;
    tuned.l2 = rows.errors().l2;
    *best = std::move(tuned);
    return absl::OkStatus();
  }

  absl::Status Conclude(Choice* choice, const Calibration& calibration,
                        const std::optional<Assignment>& best, TuningResult* result) {
    result->is_stopped |= choice->is_stopped();
    result->is_out_of_time |= choice->is_out_of_time();
    result->tried = choice->tried();
    const std::optional<Assignment>& found = best ? best : choice->nearest();
    if (found) {
      result->chosen = found->error;
      result->chosen_l2 = found->l2;
      ABSL_ASSIGN_OR_RETURN(std::string file, choice->FileOf(*found));
      ABSL_RETURN_IF_ERROR(Check(file, found->precisions, result));
      result->keeps_budget = best && spec_.budget.Allows(result->held_out.value);
      if (result->keeps_budget) result->model = std::move(file);
    }
    AddNodes(*choice, calibration, found, result);
    result->curve = choice->curve();
    for (TriedPoint& point : result->curve)
      point.is_chosen = result->keeps_budget && point.error == found->error.value;
    return absl::OkStatus();
  }

  // Errors on the examples that are held out, and times. A stop does not end this.
  absl::Status Check(const std::string& file, const Precisions& precisions, TuningResult* result) {
    ABSL_ASSIGN_OR_RETURN(const auto runs,
                          TrialRuns::Create(engine_, &set_, spec_.scratch, nullptr));
    if (spec_.progress) spec_.progress({1, "the check on examples that are held out"});
    ABSL_ASSIGN_OR_RETURN(const auto tuned,
                          runs->Load(file, NodePrecisions(layers_, precisions), node_rows_));
    ABSL_ASSIGN_OR_RETURN(const TrialOutputs exact, runs->Run(*exact_, set_.held_out, output_));
    ABSL_RETURN_IF_ERROR(CheckExact(exact, set_.held_out, spec_.budget.measure()));
    ABSL_ASSIGN_OR_RETURN(const TrialOutputs other, runs->Run(*tuned, set_.held_out, output_));
    OutputError error;
    for (size_t i = 0; i < exact.outputs.size(); ++i) error.Add(exact.outputs[i], other.outputs[i]);
    result->held_out = error.Of(spec_.budget.measure());
    result->tuned_bytes = static_cast<int64_t>(file.size());
    return runs->TimeInTurns(*exact_, *tuned, &result->exact_time, &result->tuned_time);
  }

  void AddNodes(const Choice& choice, const Calibration& calibration,
                const std::optional<Assignment>& found, TuningResult* result) const {
    double squares = 0;
    std::map<std::string, Range> ranges;
    if (found) ranges = choice.RangesOf(*found);
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      const int index = static_cast<int>(i);
      TunedNode node{.node = layer.name, .op = layer.op, .input = layer.input};
      node.error_alone = choice.ErrorAlone(index, TunedPrecision::kInt8);
      node.bf16_alone = choice.ErrorAlone(index, TunedPrecision::kBf16);
      if (!choice.times().empty()) {
        node.exact_time = choice.times()[i].exact;
        node.bf16_time = choice.times()[i].bf16;
        node.int8_time = choice.times()[i].int8;
      }
      if (found) {
        const int group = calibration.GroupOf(layer.input);
        const auto used = ranges.find(layer.input);
        const Range& range =
            used != ranges.end() ? used->second : calibration.RangeOf(group, found->methods[group]);
        node.low = range.low;
        node.high = range.high;
        node.range_method = std::string(NameOf(found->methods[group]));
        const double error = choice.ErrorAlone(index, found->precisions[i]);
        if (error > 0) squares += error * error;
        if (result->keeps_budget) node.precision = found->precisions[i];
      }
      if (result->keeps_budget && !rows_.empty()) {
        node.row = rows_[i].row;
        node.row_before = rows_[i].before;
        node.row_after = rows_[i].after;
      }
      node.reason = ReasonText(node, spec_);
      if (!node.row.empty()) AddRowReason(rows_[i], &node.reason);
      result->nodes.push_back(std::move(node));
    }
    result->predicted_l2 = std::sqrt(squares);
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
    tuning.set_held_out_error(MeasuredText(spec_.budget.measure(), result.held_out));
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
  std::shared_ptr<const Model> exact_;
  int output_ = 0;
  std::vector<Layer> layers_;
  ExampleSet set_;
  std::unique_ptr<TrialRuns> runs_;
  std::vector<RowChoice::LayerRow> rows_;         // of each layer; empty: not chosen
  std::map<std::string, std::string> node_rows_;  // LoadOptions::node_rows
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
