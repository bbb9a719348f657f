// SPDX-License-Identifier: Apache-2.0
#include "engine/network/value_uses.h"

#include <utility>
#include <variant>

#include "engine/network/operation_rows.h"

namespace tilewire::network {

namespace {

// The steps that are fused into an operation of one kind; null where the kind takes none.
template <typename Params>
struct FusedRow {
  static const std::vector<FusedStep>* Steps(const Operation& operation) {
    if constexpr (requires(const Params& params) { params.fused; }) {
      return &std::get<Params>(operation.params).fused;
    } else {
      return nullptr;
    }
  }
  static constexpr auto kRow = &FusedRow::Steps;
};

}  // namespace

const std::vector<FusedStep>* FusedSteps(const Operation& operation) {
  return RowOf<FusedRow>(operation)(operation);
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
