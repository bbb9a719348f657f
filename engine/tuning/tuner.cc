// SPDX-License-Identifier: Apache-2.0
#include "engine/tuner.h"

#include <cmath>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/new_file.h"
#include "engine/tuning/choice.h"
#include "engine/tuning/conversions.h"
#include "engine/tuning/example_set.h"

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

std::string ReasonText(const TunedNode& node) {
  const double saved = absl::ToDoubleMicroseconds(node.exact_time - node.int8_time);
  const std::string time =
      node.exact_time == absl::ZeroDuration() && node.int8_time == absl::ZeroDuration()
          ? "its time was not measured"
      : saved > 0 ? absl::StrFormat("int8 saves %.0f us", saved)
                  : absl::StrFormat("int8 costs %.0f us more", -saved);
  if (node.error_alone < 0) return absl::StrCat(time, ", its error alone was not measured");
  return absl::StrCat(time, absl::StrFormat(", at an l2 of %.1e alone", node.error_alone));
}

// One call of Tune().
class Tuning {
 public:
  Tuning(Engine* engine, const std::string& path, const TuningSpec& spec)
      : engine_(engine), path_(path), spec_(spec), deadline_(absl::Now() + spec.time) {}

  absl::StatusOr<TuningResult> Run(absl::Span<const TuningExample> examples) {
    ABSL_ASSIGN_OR_RETURN(exact_, engine_->LoadModel(path_));
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
    ABSL_RETURN_IF_ERROR(choice.Run());
    TuningResult result;
    result.exact_bytes = static_cast<int64_t>(source.bytes().size());
    ABSL_RETURN_IF_ERROR(Conclude(&choice, calibration, &result));
    return result;
  }

 private:
  void Report(const std::string& text) const {
    if (spec_.progress) spec_.progress({0, text});
  }

  absl::Status Conclude(Choice* choice, const Calibration& calibration, TuningResult* result) {
    result->is_stopped = choice->is_stopped();
    result->is_out_of_time = choice->is_out_of_time();
    result->tried = choice->tried();
    const std::optional<Assignment>& found = choice->best() ? choice->best() : choice->nearest();
    if (found) {
      result->chosen = found->error;
      result->chosen_l2 = found->l2;
      ABSL_ASSIGN_OR_RETURN(std::string file, choice->FileOf(*found));
      ABSL_RETURN_IF_ERROR(Check(file, result));
      result->keeps_budget = choice->best() && spec_.budget.Allows(result->held_out.value);
      if (result->keeps_budget) result->model = std::move(file);
    }
    AddNodes(*choice, calibration, found, result);
    return absl::OkStatus();
  }

  // Errors on the examples that are held out, and times. A stop does not end this.
  absl::Status Check(const std::string& file, TuningResult* result) {
    ABSL_ASSIGN_OR_RETURN(const auto runs,
                          TrialRuns::Create(engine_, &set_, spec_.scratch, nullptr));
    if (spec_.progress) spec_.progress({1, "the check on examples that are held out"});
    ABSL_ASSIGN_OR_RETURN(const auto tuned, runs->Load(file));
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
    for (size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      TunedNode node{.node = layer.name, .op = layer.op, .input = layer.input};
      node.error_alone = choice.ErrorAlone(static_cast<int>(i));
      if (!choice.times().empty()) {
        node.exact_time = choice.times()[i].exact;
        node.int8_time = choice.times()[i].int8;
      }
      if (found) {
        const int group = calibration.GroupOf(layer.input);
        const Range& range = calibration.RangeOf(group, found->methods[group]);
        node.low = range.low;
        node.high = range.high;
        node.range_method = std::string(NameOf(found->methods[group]));
        if (found->is_int8[i] && node.error_alone > 0)
          squares += node.error_alone * node.error_alone;
        if (result->keeps_budget && found->is_int8[i]) node.precision = TunedPrecision::kInt8;
      }
      node.reason = ReasonText(node);
      result->nodes.push_back(std::move(node));
    }
    result->predicted_l2 = std::sqrt(squares);
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
};

}  // namespace
}  // namespace tuning

absl::StatusOr<TuningResult> Tune(Engine* engine, const std::string& path,
                                  absl::Span<const TuningExample> examples,
                                  const TuningSpec& spec) {
  return tuning::Tuning(engine, path, spec).Run(examples);
}

absl::Status WriteTunedModel(const TuningResult& result, const std::string& path) {
  if (result.model.empty())
    return absl::FailedPreconditionError("no model was found that keeps the budget");
  ABSL_ASSIGN_OR_RETURN(reader::NewFile file, reader::NewFile::Create(path));
  ABSL_RETURN_IF_ERROR(file.Append(result.model.data(), static_cast<int64_t>(result.model.size())));
  ABSL_RETURN_IF_ERROR(file.Finish());
  return file.Publish(/*replaces=*/true);
}

}  // namespace tilewire
