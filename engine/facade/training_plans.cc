// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/training_plans.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/facade/element_bounds.h"
#include "engine/facade/training_notes.h"
#include "engine/lowering/lowering.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire {
namespace {

CreateOptions OptionsOfPrimitives(const EngineShared& shared) {
  return {.max_isa = shared.options.max_isa, .only = {}};
}

// Statistics are read in row-major order wherever they are read.
absl::StatusOr<int> Keep(const network::ConstantPtr& constant, runtime::ParameterStore* store) {
  ABSL_ASSIGN_OR_RETURN(const int index, store->Add(constant->name, constant->dims, constant));
  if (!store->Home(index).IsZero()) return index;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain, runtime::PlainDesc(constant->dims, DataType::kF32,
                                                                   /*channels_last=*/false));
  ABSL_RETURN_IF_ERROR(store->Settle(index, plain));
  return index;
}

}  // namespace

TrainingPlans::TrainingPlans(TrainingSource source, EngineShared* shared)
    : source_(std::move(source)),
      shared_(*shared),
      weights_(&shared->cache, OptionsOfPrimitives(*shared)),
      store_(OptionsOfPrimitives(*shared)) {}

absl::StatusOr<std::shared_ptr<const TrainingPlan>> TrainingPlans::GetOrMake(
    Purpose purpose, const BatchShape& shape, const std::function<absl::Status()>& interrupted) {
  const auto found = absl::c_find_if(entries_, [&](const Entry& entry) {
    return entry.purpose == purpose && entry.shape == shape;
  });
  if (found != entries_.end()) {
    entries_.splice(entries_.begin(), entries_, found);
    return entries_.front().planned;
  }
  ABSL_ASSIGN_OR_RETURN(auto planned, Make(purpose, shape, interrupted));
  entries_.push_front({purpose, shape, planned});
  std::vector<GivenTargets>& targets = entries_.front().shape.targets;
  if (targets.empty()) {
    for (const TensorSpec& one : planned->targets)
      targets.push_back({one.dims, *ElementCount(one.dims) * SizeOf(one.type)});
  }
  if (entries_.size() > kPlans) entries_.pop_back();
  return planned;
}

absl::StatusOr<network::Network> TrainingPlans::NetworkOf(Purpose purpose,
                                                          const BatchShape& shape) const {
  switch (purpose) {
    case Purpose::kUpdate:
      return NetworkOfUpdate(source_, shape);
    case Purpose::kEvaluation:
      return NetworkOfEvaluation(source_, shape, /*has_losses=*/true);
    case Purpose::kOutputs:
      return NetworkOfEvaluation(source_, shape, /*has_losses=*/false);
    case Purpose::kStatistics:
      break;
  }
  return NetworkOfStatistics(source_, shape);
}

absl::StatusOr<std::shared_ptr<const TrainingPlan>> TrainingPlans::Make(
    Purpose purpose, const BatchShape& shape, const std::function<absl::Status()>& interrupted) {
  const bool has_losses = purpose == Purpose::kUpdate || purpose == Purpose::kEvaluation;
  ABSL_ASSIGN_OR_RETURN(const network::Network network, NetworkOf(purpose, shape));
  auto planned = std::make_shared<TrainingPlan>();
  lowering::LoweringContext context;
  context.cache = &shared_.cache;
  context.weights = &weights_;
  context.parameters = &store_;
  context.options = OptionsOfPrimitives(shared_);
  context.convolution_algorithm = shared_.options.convolution_algorithm;
  context.team = threading::Team(&shared_.arena);
  context.between_operations = interrupted;
  ABSL_ASSIGN_OR_RETURN(planned->plan, lowering::LowerNetwork(network, context));
  // Also statistics that are folded into what a plan reads.
  for (const network::Parameter& parameter : network.parameters) {
    if (!parameter.learns) ABSL_RETURN_IF_ERROR(Keep(parameter.initial, &store_).status());
  }
  planned->losses = has_losses ? static_cast<int>(source_.spec.losses.size()) : 0;
  for (const network::DropoutMask& mask : network.masks)
    planned->masks.push_back({mask, network.values[mask.value].dims});
  for (size_t i = shape.inputs.size() + network.masks.size(); i < network.inputs.size(); ++i) {
    const network::Value& value = network.values[network.inputs[i]];
    planned->targets.push_back({value.name, value.type, value.dims});
  }
  for (const network::Parameter& parameter : network.parameters) {
    if (parameter.gradient != network::kNoValue)
      planned->learning.push_back(store_.Find(parameter.name));
  }
  ABSL_RETURN_IF_ERROR(NoteStatistics(network, planned.get()));
  if (purpose != Purpose::kUpdate) return planned;
  planned->notes = NotesOf(network, *planned->plan);
  planned->bounds = BoundsOfElements(network, static_cast<int>(shape.inputs.size()));
  return planned;
}

absl::Status TrainingPlans::NoteStatistics(const network::Network& network, TrainingPlan* planned) {
  int output = planned->losses;
  for (const network::RunningStatistics& statistics : network.statistics) {
    PlannedStatistics one{.batch_mean = output,
                          .batch_variance = output + 1,
                          .momentum = statistics.momentum,
                          .elements = statistics.elements};
    output += 2;
    ABSL_ASSIGN_OR_RETURN(one.mean, Keep(statistics.mean, &store_));
    ABSL_ASSIGN_OR_RETURN(one.variance, Keep(statistics.variance, &store_));
    planned->statistics.push_back(one);
  }
  return absl::OkStatus();
}

}  // namespace tilewire
