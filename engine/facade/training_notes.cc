// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/training_notes.h"

#include <set>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewire {
namespace {

// Exporters that fold normalizations into convolutions leave these with a bias.
bool HasFoldedNormalizations(const network::Network& network) {
  bool has_bias = false;
  for (const network::Operation& operation : network.operations) {
    if (std::holds_alternative<network::BatchNormalization>(operation.params)) return false;
    const bool convolves = std::holds_alternative<network::ComputedConvolution>(operation.params);
    has_bias |= convolves && operation.srcs.size() > 2;
  }
  return has_bias;
}

bool IsSoftmax(network::ValueId value, const network::Network& network) {
  return absl::c_any_of(network.operations, [value](const network::Operation& operation) {
    return operation.dst == value && std::holds_alternative<network::Softmax>(operation.params);
  });
}

void NoteReferences(const runtime::Plan& plan, std::vector<std::string>* notes) {
  std::set<std::string> names;
  size_t count = 0;
  for (const runtime::Step& step : plan.steps) {
    if (step.primitive == nullptr || !step.primitive->info().traits.is_reference) continue;
    ++count;
    names.emplace(step.primitive->name());
  }
  if (count == 0) return;
  notes->push_back(absl::StrCat(count, " of the ", plan.steps.size(),
                                " steps of an update run reference implementations, which are "
                                "slow: ",
                                absl::StrJoin(names, ", "), "."));
}

}  // namespace

std::vector<std::string> NotesOf(const network::Network& forward, const TrainingSpec& spec,
                                 const std::vector<int>& outputs, const runtime::Plan& update) {
  std::vector<std::string> notes;
  if (HasFoldedNormalizations(forward)) {
    notes.push_back(
        "The model has convolutions with biases and no batch normalization: exporters fold it into "
        "them when they export for evaluation. It trains as it is.");
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const network::ValueId output = forward.outputs[outputs[i]];
    if (spec.losses[i].kind != LossSpec::Kind::kSoftmaxCrossEntropy || !IsSoftmax(output, forward))
      continue;
    notes.push_back(absl::StrCat("Output '", forward.values[output].name,
                                 "' is a softmax already, and a cross entropy takes another one: "
                                 "train by the values before it."));
  }
  NoteReferences(update, &notes);
  return notes;
}

}  // namespace tilewire
