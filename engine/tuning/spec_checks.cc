// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/spec_checks.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"

namespace tilewire::tuning {

absl::StatusOr<int> OutputOf(const ModelSignature& signature, const ErrorBudget& budget) {
  for (size_t i = 0; i < signature.outputs.size(); ++i) {
    const TensorSpec& output = signature.outputs[i];
    if (!budget.output().empty() && output.name != budget.output()) continue;
    if (output.type != DataType::kF32) {
      return InvalidArgument("output '", output.name, "' is of ", DataTypeName(output.type),
                             "; a budget is of an output of f32");
    }
    if (IsOfAnswers(budget.measure()) && !output.any_rank &&
        (output.dims.size() < 2 || output.dims[1] == 1)) {
      return InvalidArgument("output '", output.name, "' is of shape ", ShapeText(output),
                             ", which has no classes along dimension 1 for ",
                             NameOf(budget.measure()));
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
    if (IsOfAnswers(measure) && (dims.size() < 2 || dims[1] < 2)) {
      return InvalidArgument("the exact model gives ", DimsToString(dims), " for example ",
                             examples[i], ", which has no classes along dimension 1 for ",
                             NameOf(measure));
    }
    for (float element : exact.outputs[i].elements) {
      if (std::isfinite(element)) continue;
      return InvalidArgument("the exact model gives ", element, " for example ", examples[i],
                             ": no error can be told from that");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSpec(const TuningSpec& spec, size_t examples, cpu::Isa isa) {
  if (spec.goal && !(*spec.goal > 1 && std::isfinite(*spec.goal)))
    return InvalidArgument("a goal of ", *spec.goal, " times the exact model's speed: above 1");
  if (!spec.labels.empty() && spec.labels.size() != examples) {
    return InvalidArgument(spec.labels.size(), " labels of ", examples,
                           " examples: one is needed for each");
  }
  if (spec.budget.measure() == ErrorMeasure::kAccuracyDrop && spec.labels.empty())
    return InvalidArgument("a budget of accuracy_drop needs the right class of each example");
  if (!spec.may_be_bf16 && !spec.may_be_int8 && !spec.chooses_rows)
    return InvalidArgument("neither bf16 nor int8 is permitted: nothing would change");
  if (!spec.may_be_bf16 || isa.Includes(cpu::Isa::kAvx512Bf16)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "bf16 needs a CPU with products of it (avx512_bf16); this one has ", cpu::IsaName(isa)));
}

}  // namespace tilewire::tuning
