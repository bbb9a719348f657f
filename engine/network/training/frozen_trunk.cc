// SPDX-License-Identifier: Apache-2.0
#include "engine/network/training/frozen_trunk.h"

#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/network/passes/passes.h"
#include "engine/network/value_uses.h"

namespace tilewire::network {
namespace {

constexpr size_t kParametersOfNormalization = 4;  // scale, shift, mean and variance

// Cuts a network into its trunk and the rest.
class TrunkCut {
 public:
  explicit TrunkCut(Network* network)
      : network_(*network),
        learns_(network->values.size(), false),
        known_(network->values.size(), nullptr) {
    for (const Parameter& parameter : network_.parameters) {
      learns_[parameter.value] = true;
      if (!parameter.learns) known_[parameter.value] = parameter.initial.get();
    }
  }

  // Takes the operations of the trunk out of the network. Its outputs are `boundary()`.
  Network Take() {
    Network trunk{.values = network_.values, .inputs = network_.inputs};
    std::vector<Operation> rest;
    for (Operation& operation : network_.operations) {
      const bool stays = !IsOfTrunk(&operation);
      (stays ? rest : trunk.operations).push_back(std::move(operation));
    }
    network_.operations = std::move(rest);
    FindBoundary();
    trunk.outputs = boundary_;
    return trunk;
  }

  // Puts back what has become of the trunk, whose outputs are still the boundary, in its order.
  void PutBack(Network trunk) {
    const auto first = static_cast<ValueId>(network_.values.size());
    std::vector<ValueId> renamed(network_.values.size());
    for (ValueId value = 0; value < first; ++value) renamed[value] = value;
    for (size_t i = 0; i < boundary_.size(); ++i) renamed[boundary_[i]] = first + trunk.outputs[i];
    const auto rename = [&renamed](ValueId& value) { value = renamed[value]; };
    for (Operation& operation : network_.operations) absl::c_for_each(operation.srcs, rename);
    absl::c_for_each(network_.outputs, rename);
    // Readers are renamed already: an input on the boundary is an output of the trunk to them.
    for (size_t i = 0; i < trunk.inputs.size(); ++i)
      renamed[network_.inputs[i]] = first + trunk.inputs[i];
    absl::c_for_each(network_.inputs, rename);
    for (DropoutMask& mask : network_.masks) rename(mask.value);
    for (Operation& operation : trunk.operations) Move(first, &operation);
    absl::c_move(trunk.values, std::back_inserter(network_.values));
    absl::c_move(network_.operations, std::back_inserter(trunk.operations));
    network_.operations = std::move(trunk.operations);
  }

 private:
  // Whether the operation depends on nothing that learns. One that normalizes by numbers alone
  // becomes a factor and a shift for each channel.
  bool IsOfTrunk(Operation* operation) {
    if (std::optional<Convolution> factors = FactorsOf(*operation)) {
      operation->params = *std::move(factors);
      operation->srcs.resize(1);
    }
    const bool learns =
        absl::c_any_of(operation->srcs, [this](ValueId src) { return learns_[src]; });
    learns_[operation->dst] = learns;
    for (ValueId more : operation->more_dsts) learns_[more] = learns;
    if (const auto* literal = std::get_if<Literal>(&operation->params))
      known_[operation->dst] = literal->constant.get();
    return !learns;
  }

  // The factors of a normalization of a tensor of the trunk whose scale and shift are literals: no
  // update moves the statistics of such a one. None where numbers are left in the file.
  std::optional<Convolution> FactorsOf(const Operation& operation) const {
    const auto* norm = std::get_if<BatchNormalization>(&operation.params);
    if (norm == nullptr || !norm->uses_given_statistics || learns_[operation.srcs[0]] ||
        learns_[operation.srcs[1]] || learns_[operation.srcs[2]])
      return std::nullopt;
    const Dims& dims = network_.values[operation.dst].dims;
    const Constant* of[kParametersOfNormalization];
    for (size_t i = 0; i < kParametersOfNormalization; ++i) {
      of[i] = known_[operation.srcs[1 + i]];
      if (of[i] == nullptr || static_cast<int64_t>(of[i]->floats.size()) != dims[1])
        return std::nullopt;
    }
    if (dims.size() < 3) return std::nullopt;
    auto scale = std::make_shared<std::vector<float>>();
    std::vector<float> shift;
    for (int64_t c = 0; c < dims[1]; ++c) {
      const double factor = of[0]->floats[c] / std::sqrt(of[3]->floats[c] + double{norm->epsilon});
      scale->push_back(static_cast<float>(factor));
      shift.push_back(static_cast<float>(of[1]->floats[c] - of[2]->floats[c] * factor));
    }
    return PerChannel(operation, std::move(scale), std::move(shift));
  }

  Convolution PerChannel(const Operation& operation, std::shared_ptr<std::vector<float>> scale,
                         std::vector<float> shift) const {
    const Value& dst = network_.values[operation.dst];
    Convolution convolution{.bias = std::move(shift), .groups = dst.dims[1]};
    convolution.weights = {.key = absl::StrCat(dst.name, "/factors"), .dims = dst.dims};
    absl::c_fill(convolution.weights.dims, 1);
    convolution.weights.dims[0] = dst.dims[1];
    convolution.weights.data = *scale;
    convolution.weights.owner = std::move(scale);
    const size_t spatial = dst.dims.size() - 2;
    convolution.strides.assign(spatial, 1);
    for (Dims* zeros :
         {&convolution.dilations, &convolution.padding_left, &convolution.padding_right})
      zeros->assign(spatial, 0);
    return convolution;
  }

  // Values of the trunk that the rest reads or the network gives.
  void FindBoundary() {
    std::vector<bool> is_read(network_.values.size(), false);
    const auto note = [&](ValueId value) {
      if (learns_[value] || is_read[value]) return;
      is_read[value] = true;
      boundary_.push_back(value);
    };
    for (const Operation& operation : network_.operations) absl::c_for_each(operation.srcs, note);
    absl::c_for_each(network_.outputs, note);
  }

  static void Move(ValueId by, Operation* operation) {
    for (ValueId& src : operation->srcs) src += by;
    for (ValueId& more : operation->more_dsts) more += by;
    operation->dst += by;
    std::vector<FusedStep>* fused = FusedSteps(*operation);
    for (size_t i = 0; fused != nullptr && i < fused->size(); ++i) {
      if ((*fused)[i].addend != kNoValue) (*fused)[i].addend += by;
    }
  }

  Network& network_;
  std::vector<bool> learns_;            // per value: it depends on what learns
  std::vector<const Constant*> known_;  // per value: the numbers of literals and statistics
  std::vector<ValueId> boundary_;
};

}  // namespace

void RunPassesOnTrunk(Network* network) {
  TrunkCut cut(network);
  Network trunk = cut.Take();
  RunPasses(&trunk);
  cut.PutBack(std::move(trunk));
  RemoveDead(network);
}

}  // namespace tilewire::network
