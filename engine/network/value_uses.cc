// SPDX-License-Identifier: Apache-2.0
#include "engine/network/value_uses.h"

#include <utility>
#include <variant>

namespace tilewire::network {

const std::vector<FusedStep>* FusedSteps(const Operation& operation) {
  return std::visit(
      [](const auto& params) -> const std::vector<FusedStep>* {
        if constexpr (requires { params.fused; }) {
          return &params.fused;
        } else {
          return nullptr;
        }
      },
      operation.params);
}

std::vector<FusedStep>* FusedSteps(Operation& operation) {
  return const_cast<std::vector<FusedStep>*>(FusedSteps(std::as_const(operation)));
}

void AddUses(const Operation& operation, int by, std::vector<int>* uses) {
  for (const ValueId src : operation.srcs) (*uses)[src] += by;
  const std::vector<FusedStep>* fused = FusedSteps(operation);
  if (fused == nullptr) return;
  for (const FusedStep& step : *fused) {
    if (step.kind == FusedStep::Kind::kSum) (*uses)[step.addend] += by;
  }
}

std::vector<int> ValueUses(const Network& network) {
  std::vector<int> uses(network.values.size());
  for (const Operation& operation : network.operations) AddUses(operation, 1, &uses);
  for (const ValueId output : network.outputs) ++uses[output];
  for (const Parameter& parameter : network.parameters) {
    if (parameter.gradient != kNoValue) ++uses[parameter.gradient];
  }
  for (const RunningStatistics& statistics : network.statistics) {
    ++uses[statistics.batch_mean];
    ++uses[statistics.batch_variance];
  }
  return uses;
}

}  // namespace tilewire::network
