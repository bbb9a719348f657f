// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/algorithm/container.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

void RemoveDeadOperations(Network* network) {
  Editor editor(network);
  for (int i = editor.size(); i-- > 0;) {
    const Operation& operation = editor.operation(i);
    const auto is_used = [&editor](ValueId dst) { return editor.use_count(dst) > 0; };
    if (!is_used(operation.dst) && absl::c_none_of(operation.more_dsts, is_used)) editor.Remove(i);
  }
}

// Numbers the values that are left in the order in which they are first named.
class Renumbering {
 public:
  explicit Renumbering(Network* network)
      : network_(network), renamed_(network->values.size(), kNoValue) {}

  void Apply() {
    for (ValueId& input : network_->inputs) Rename(&input);
    for (DropoutMask& mask : network_->masks) Rename(&mask.value);
    for (Parameter& parameter : network_->parameters) Rename(&parameter.value);
    for (Operation& operation : network_->operations) {
      for (ValueId& src : operation.srcs) Rename(&src);
      std::vector<FusedStep>* fused = FusedSteps(operation);
      for (size_t i = 0; fused != nullptr && i < fused->size(); ++i) Rename(&(*fused)[i].addend);
      Rename(&operation.dst);
      for (ValueId& dst : operation.more_dsts) Rename(&dst);
    }
    for (ValueId& output : network_->outputs) Rename(&output);
    for (Parameter& parameter : network_->parameters) Rename(&parameter.gradient);
    for (RunningStatistics& statistics : network_->statistics) {
      Rename(&statistics.batch_mean);
      Rename(&statistics.batch_variance);
    }
    network_->values = std::move(kept_);
  }

 private:
  void Rename(ValueId* value) {
    if (*value == kNoValue) return;
    if (renamed_[*value] == kNoValue) {
      renamed_[*value] = static_cast<ValueId>(kept_.size());
      kept_.push_back(std::move(network_->values[*value]));
    }
    *value = renamed_[*value];
  }

  Network* network_;
  std::vector<ValueId> renamed_;
  std::vector<Value> kept_;
};

}  // namespace

void RemoveDead(Network* network) {
  RemoveDeadOperations(network);
  Renumbering(network).Apply();
}

}  // namespace tilewire::network
