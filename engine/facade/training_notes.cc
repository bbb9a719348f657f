// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/training_notes.h"

#include <algorithm>
#include <set>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace tilewire {

using functions::Function;
using network::Operation;
using network::ValueId;
namespace {

// Exporters that fold normalizations into convolutions leave these with a bias. Networks that
// normalize rows have biases of their own.
bool HasFoldedNormalizations(const network::Network& network) {
  // A frozen trunk folds its normalizations; their statistics are still parameters.
  const bool has_statistics =
      !network.statistics.empty() ||
      absl::c_any_of(network.parameters, [](const auto& parameter) { return !parameter.learns; });
  const auto any = [&network](auto is_one) { return absl::c_any_of(network.operations, is_one); };
  const bool normalizes_rows = any([](const Operation& operation) {
    return std::holds_alternative<network::LayerNormalization>(operation.params);
  });
  return !has_statistics && !normalizes_rows && any([](const Operation& operation) {
    const bool is_weighted =
        std::holds_alternative<network::ComputedConvolution>(operation.params) ||
        std::holds_alternative<network::ComputedDeconvolution>(operation.params);
    return is_weighted && operation.srcs.size() > 2;
  });
}

bool IsSoftmax(ValueId value, const network::Network& network) {
  return absl::c_any_of(network.operations, [value](const Operation& operation) {
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

// The function of one number that the operation is; null if it is none.
const functions::Elementwise* FunctionOf(const Operation& operation) {
  if (const auto* activation = std::get_if<network::Activation>(&operation.params))
    return &activation->op;
  return std::get_if<network::Elementwise>(&operation.params);
}

bool IsSigmoid(ValueId value, const network::Network& network) {
  return absl::c_any_of(network.operations, [value](const Operation& operation) {
    const functions::Elementwise* function = FunctionOf(operation);
    return operation.dst == value && function != nullptr &&
           function->function == Function::kLogistic;
  });
}

// Outputs that are probabilities before the loss makes them such.
void NoteProbabilities(const network::Network& update, std::vector<std::string>* notes) {
  for (const Operation& operation : update.operations) {
    const auto* loss = std::get_if<network::Loss>(&operation.params);
    if (loss == nullptr) continue;
    const ValueId output = operation.srcs[0];
    using functions::LossFunction;
    const bool is_softmax =
        loss->function == LossFunction::kSoftmaxCrossEntropy && IsSoftmax(output, update);
    const bool is_sigmoid =
        loss->function == LossFunction::kBinaryCrossEntropy && IsSigmoid(output, update);
    if (!is_softmax && !is_sigmoid) continue;
    notes->push_back(absl::StrCat("Output '", update.values[output].name, "' is a ",
                                  is_softmax ? "softmax" : "sigmoid",
                                  " already, and a cross entropy takes another one: train by the "
                                  "values before it."));
  }
}

// Whether the gradient is 0 wherever there is one.
bool IsFlat(const Operation& operation) {
  static constexpr Function kFlat[] = {Function::kRound, Function::kFloor, Function::kCeil,
                                       Function::kSign, Function::kTruncate};
  const functions::Elementwise* function = FunctionOf(operation);
  return function != nullptr && absl::c_linear_search(kFlat, function->function);
}

// The operations of forward and the losses; gradients follow.
absl::Span<const Operation> ForwardOf(const network::Network& update) {
  const auto last =
      std::find_if(update.operations.rbegin(), update.operations.rend(), [](const auto& operation) {
        return std::holds_alternative<network::Loss>(operation.params);
      });
  return absl::MakeConstSpan(update.operations).first(update.operations.rend() - last);
}

// Per value: whether a parameter that learns leads to it.
std::vector<bool> Learned(const network::Network& update, absl::Span<const Operation> forward) {
  std::vector<bool> learned(update.values.size(), false);
  for (const network::Parameter& parameter : update.parameters)
    learned[parameter.value] = parameter.learns;
  for (const Operation& operation : forward) {
    if (!absl::c_any_of(operation.srcs, [&](ValueId src) { return learned[src]; })) continue;
    learned[operation.dst] = true;
    for (ValueId more : operation.more_dsts) learned[more] = true;
  }
  return learned;
}

// Operations that lead to no loss are not in the network.
void NoteFlatFunctions(const network::Network& update, std::vector<std::string>* notes) {
  const absl::Span<const Operation> forward = ForwardOf(update);
  const std::vector<bool> learned = Learned(update, forward);
  std::vector<std::string> nodes;
  for (const Operation& operation : forward) {
    if (!IsFlat(operation) || !learned[operation.srcs[0]]) continue;
    nodes.push_back(absl::StrCat("'", operation.name.substr(0, 200), "' (",
                                 functions::AlgorithmName(FunctionOf(operation)->function), ")"));
  }
  if (nodes.empty()) return;
  notes->push_back(absl::StrCat(
      "Functions of steps have a gradient of 0, so that parameters before them learn nothing by "
      "way of them: ",
      absl::StrJoin(nodes, ", "), "."));
}

}  // namespace

std::vector<std::string> NotesOf(const network::Network& update, const runtime::Plan& plan) {
  std::vector<std::string> notes;
  if (HasFoldedNormalizations(update)) {
    notes.push_back(
        "The model has convolutions with biases and no batch normalization: if there was any, the "
        "export has folded it into them. It trains as it is; another export keeps them, for "
        "training "
        "and for serving (in torch, model.eval() and training=TrainingMode.PRESERVE).");
  }
  NoteProbabilities(update, &notes);
  NoteFlatFunctions(update, &notes);
  NoteReferences(plan, &notes);
  return notes;
}

}  // namespace tilewire
