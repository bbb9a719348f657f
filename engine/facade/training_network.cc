// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/training_network.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/network/passes/passes.h"
#include "engine/network/training/differentiate.h"
#include "engine/network/training/frozen_trunk.h"
#include "engine/onnx/training_refusal.h"

namespace tilewire {
namespace {

using network::GradientSeed;
using network::Loss;
using network::Network;
using network::Value;
using network::ValueId;

Loss LossOf(const LossSpec& spec, bool gives_gradient) {
  return {.function = spec.kind,
          .gives_gradient = gives_gradient,
          .mean = spec.mean,
          .factor = spec.factor,
          .delta = spec.delta,
          .label_smoothing = spec.label_smoothing,
          .ignore_index = spec.ignore_index,
          .class_weights = spec.class_weights};
}

ValueId AddValue(std::string name, DataType type, Dims dims, Network* network) {
  network->values.push_back({std::move(name), type, std::move(dims)});
  return static_cast<ValueId>(network->values.size()) - 1;
}

absl::Status Misfit(const Value& output, const GivenTargets& targets, absl::string_view expected) {
  return InvalidArgument("targets of output '", output.name, "' ", DimsToString(output.dims),
                         ": shape ", DimsToString(targets.dims), " of ", targets.bytes,
                         " bytes; expected ", expected);
}

bool HasBytes(const GivenTargets& targets, DataType type) {
  return targets.bytes == *ElementCount(targets.dims) * SizeOf(type);
}

absl::Status CheckClasses(const LossSpec& spec, const Value& output) {
  if (output.dims.size() < 2)
    return InvalidArgument("output '", output.name, "' ", DimsToString(output.dims),
                           " has no classes along a second dimension");
  const auto weights = static_cast<int64_t>(spec.class_weights.size());
  if (weights == 0 || weights == output.dims[1]) return absl::OkStatus();
  return InvalidArgument("class_weights: ", weights, " numbers for the ", output.dims[1],
                         " classes of output '", output.name, "'");
}

// The type of the targets of a loss with classes: labels are integers without that dimension.
absl::StatusOr<DataType> TypeOfClasses(const LossSpec& spec, const Value& output,
                                       const GivenTargets& targets) {
  Dims labels = output.dims;
  labels.erase(labels.begin() + 1);
  if (targets.dims == labels) {
    if (HasBytes(targets, DataType::kS64)) return DataType::kS64;
    if (HasBytes(targets, DataType::kS32)) return DataType::kS32;
  } else if (targets.dims == output.dims && HasBytes(targets, DataType::kF32)) {
    if (!spec.ignore_index) return DataType::kF32;
    return InvalidArgument("targets of output '", output.name,
                           "': ignore_index is of labels, these are probabilities");
  }
  return Misfit(output, targets,
                absl::StrCat("labels ", DimsToString(labels), " of s64 or s32, or probabilities ",
                             DimsToString(output.dims), " of f32"));
}

// Without losses.
absl::StatusOr<Network> ForwardNetwork(const TrainingSource& source, const BatchShape& shape,
                                       const reader::TrainingPurpose& purpose) {
  ABSL_ASSIGN_OR_RETURN(Network network, source.model.SpecializeForTraining(shape.inputs, purpose));
  network::RunPassesOnTrunk(&network);
  return network;
}

// `given` are null where those that fit are wanted.
absl::StatusOr<ValueId> AddTargets(const LossSpec& spec, ValueId output_id,
                                   const GivenTargets* given, Network* network) {
  const Value output = network->values[output_id];
  if (output.type != DataType::kF32)
    return InvalidArgument("output '", output.name, "' is of ", DataTypeName(output.type),
                           "; a loss needs f32: a file of f32, and the values before an ArgMax");
  const std::string name = absl::StrCat("targets of '", output.name, "'");
  DataType type = DataType::kF32;
  Dims dims = output.dims;
  const bool takes_labels = spec.kind == LossSpec::Kind::kSoftmaxCrossEntropy;
  if (takes_labels || !spec.class_weights.empty()) ABSL_RETURN_IF_ERROR(CheckClasses(spec, output));
  if (takes_labels) {
    if (given != nullptr) {
      ABSL_ASSIGN_OR_RETURN(type, TypeOfClasses(spec, output, *given));
      dims = given->dims;
    } else {
      type = DataType::kS64;
      dims.erase(dims.begin() + 1);
    }
  } else if (given != nullptr && (given->dims != dims || !HasBytes(*given, type))) {
    return Misfit(output, *given, absl::StrCat(DimsToString(dims), " of f32"));
  }
  return AddValue(name, type, std::move(dims), network);
}

// Appends the losses of a batch. Returns their values; `seeds`, unless it is null, receives the
// gradients.
absl::StatusOr<std::vector<ValueId>> AddLosses(const TrainingSource& source,
                                               const BatchShape& shape, Network* network,
                                               std::vector<GradientSeed>* seeds) {
  std::vector<ValueId> losses;
  for (size_t i = 0; i < source.spec.losses.size(); ++i) {
    const LossSpec& spec = source.spec.losses[i];
    const ValueId output = network->outputs[source.outputs[i]];
    const GivenTargets* given = shape.targets.empty() ? nullptr : &shape.targets[i];
    ABSL_ASSIGN_OR_RETURN(const ValueId targets, AddTargets(spec, output, given, network));
    network->inputs.push_back(targets);
    const std::string name = absl::StrCat("loss of '", network->values[output].name, "'");
    losses.push_back(AddValue(name, DataType::kF32, {1}, network));
    network::Operation operation{
        name, LossOf(spec, seeds != nullptr), {output, targets}, losses.back()};
    if (seeds != nullptr) {
      const Dims dims = network->values[output].dims;
      seeds->push_back(
          {output, AddValue(absl::StrCat("gradient of ", name), DataType::kF32, dims, network)});
      operation.more_dsts = {seeds->back().gradient};
    }
    network->operations.push_back(std::move(operation));
  }
  return losses;
}

void AddOutput(ValueId value, Network* network) {
  network->outputs.push_back(value);
  network->output_dims.push_back(network->values[value].dims);
}

// Leaves these values, and what Network::statistics has, as the only outputs.
void GiveStatistics(const std::vector<ValueId>& losses, Network* network) {
  network->outputs.clear();
  network->output_dims.clear();
  for (ValueId loss : losses) AddOutput(loss, network);
  for (const network::RunningStatistics& statistics : network->statistics) {
    AddOutput(statistics.batch_mean, network);
    AddOutput(statistics.batch_variance, network);
  }
  network::RemoveDead(network);
}

}  // namespace

bool BatchShape::operator==(const BatchShape& other) const {
  if (inputs != other.inputs || targets.size() != other.targets.size()) return false;
  for (size_t i = 0; i < targets.size(); ++i) {
    if (targets[i].dims != other.targets[i].dims || targets[i].bytes != other.targets[i].bytes)
      return false;
  }
  return true;
}

absl::StatusOr<Network> NetworkOfUpdate(const TrainingSource& source, const BatchShape& shape) {
  ABSL_ASSIGN_OR_RETURN(Network network,
                        ForwardNetwork(source, shape,
                                       {.uses_given_statistics = source.spec.frozen_statistics,
                                        .drops = true,
                                        .frozen = source.frozen}));
  std::vector<GradientSeed> seeds;
  ABSL_ASSIGN_OR_RETURN(const std::vector<ValueId> losses,
                        AddLosses(source, shape, &network, &seeds));
  std::vector<size_t> learning;  // indices, which stay
  std::vector<ValueId> values;
  for (size_t i = 0; i < network.parameters.size(); ++i) {
    if (!network.parameters[i].learns) continue;
    learning.push_back(i);
    values.push_back(network.parameters[i].value);
  }
  ABSL_ASSIGN_OR_RETURN(const std::vector<ValueId> gradients,
                        network::Differentiate(seeds, values, &network));
  bool learns = false;
  for (size_t i = 0; i < learning.size(); ++i) {
    network.parameters[learning[i]].gradient = gradients[i];
    learns |= gradients[i] != network::kNoValue;
  }
  if (!learns) return InvalidArgument("no loss depends on a parameter that is not frozen");
  GiveStatistics(losses, &network);
  return network;
}

absl::StatusOr<Network> NetworkOfStatistics(const TrainingSource& source, const BatchShape& shape) {
  ABSL_ASSIGN_OR_RETURN(Network network, ForwardNetwork(source, shape, {.frozen = source.frozen}));
  if (network.statistics.empty())
    return WithRefusal(
        InvalidArgument("the model has no normalization whose statistics follow a batch"),
        TrainingRefusal::kNoStatistics);
  GiveStatistics({}, &network);
  return network;
}

absl::StatusOr<Network> NetworkOfEvaluation(const TrainingSource& source, const BatchShape& shape,
                                            bool has_losses) {
  ABSL_ASSIGN_OR_RETURN(
      Network network,
      ForwardNetwork(source, shape, {.uses_given_statistics = true, .frozen = source.frozen}));
  if (!has_losses) return network;
  ABSL_ASSIGN_OR_RETURN(const std::vector<ValueId> losses,
                        AddLosses(source, shape, &network, nullptr));
  for (ValueId loss : losses) AddOutput(loss, &network);
  return network;
}

}  // namespace tilewire
