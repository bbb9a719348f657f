// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/training_setup.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/training/name_pattern.h"
#include "engine/training/spec_check.h"

namespace tilewire {
namespace {

constexpr size_t kNamesShown = 12;

// "'a', 'b' and 3 more"
std::string NamesText(const std::vector<std::string>& names) {
  const size_t shown = std::min(names.size(), kNamesShown);
  std::string text = absl::StrJoin(
      names.begin(), names.begin() + shown, ", ",
      [](std::string* out, const std::string& name) { absl::StrAppend(out, "'", name, "'"); });
  if (shown < names.size()) absl::StrAppend(&text, " and ", names.size() - shown, " more");
  return text;
}

template <typename Named>
std::vector<std::string> NamesOf(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

// Numbers along one dimension at most are biases, or factors of normalizations.
bool DecaysByDefault(const Dims& dims) {
  return absl::c_count_if(dims, [](int64_t size) { return size > 1; }) > 1;
}

absl::StatusOr<int> OutputOf(const LossSpec& loss, const std::vector<TensorSpec>& outputs) {
  if (outputs.empty()) return InvalidArgument("the model has no output");
  if (loss.output.empty()) return 0;
  const auto found =
      absl::c_find_if(outputs, [&](const TensorSpec& one) { return one.name == loss.output; });
  if (found != outputs.end()) return static_cast<int>(found - outputs.begin());
  return InvalidArgument("there is no output '", loss.output, "'; the model has ",
                         NamesText(NamesOf(outputs)));
}

// Labels, or numbers as the output's.
TensorSpec TargetsOf(const LossSpec& loss, const TensorSpec& output) {
  TensorSpec targets = output;
  targets.name = absl::StrCat("targets of '", output.name, "'");
  targets.type = DataType::kF32;
  if (loss.kind != LossSpec::Kind::kSoftmaxCrossEntropy) return targets;
  targets.type = DataType::kS64;
  if (targets.dims.size() > 1) targets.dims.erase(targets.dims.begin() + 1);
  return targets;
}

const ParameterGroup* GroupOf(const std::string& name, const TrainingSpec& spec) {
  for (const ParameterGroup& group : spec.groups) {
    if (training::MatchesPattern(name, group.pattern)) return &group;
  }
  return nullptr;
}

absl::Status CheckGroups(const TrainingSpec& spec, const std::vector<std::string>& names) {
  for (const ParameterGroup& group : spec.groups) {
    const bool matches = absl::c_any_of(names, [&](const std::string& name) {
      return training::MatchesPattern(name, group.pattern);
    });
    if (matches) continue;
    return InvalidArgument("group '", group.pattern, "' matches no parameter; there are ",
                           NamesText(names));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TrainingSetup> SetUpTraining(const reader::OnnxModel& model,
                                            const TrainingSpec& spec) {
  ABSL_RETURN_IF_ERROR(training::CheckSpec(spec));
  TrainingSetup setup;
  for (const network::ConstantPtr& constant : model.Trainable()) {
    const ParameterGroup* group = GroupOf(constant->name, spec);
    const bool frozen = group != nullptr && group->frozen;
    setup.parameters.push_back({constant->name, constant->dims, frozen});
    if (frozen) {
      setup.frozen.insert(constant->name);
      continue;
    }
    ParameterSettings& settings = setup.settings[constant->name];
    if (DecaysByDefault(constant->dims)) settings.weight_decay = spec.optimizer.weight_decay;
    if (group == nullptr) continue;
    settings.rate_factor = group->rate_factor;
    if (group->weight_decay) settings.weight_decay = *group->weight_decay;
  }
  if (setup.parameters.empty())
    return InvalidArgument(
        "the model has no floating-point parameters; of a quantized model, the model of real "
        "numbers "
        "that it was made of can be trained");
  ABSL_RETURN_IF_ERROR(CheckGroups(spec, NamesOf(setup.parameters)));
  if (setup.settings.empty()) return InvalidArgument("all parameters of the model are frozen");
  for (const LossSpec& loss : spec.losses) {
    ABSL_ASSIGN_OR_RETURN(setup.outputs.emplace_back(), OutputOf(loss, model.outputs()));
    setup.targets.push_back(TargetsOf(loss, model.outputs()[setup.outputs.back()]));
  }
  return setup;
}

}  // namespace tilewire
