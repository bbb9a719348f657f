// SPDX-License-Identifier: Apache-2.0
#include "engine/network/training/merged_gradients.h"

#include <map>
#include <utility>
#include <variant>

#include "engine/network/value_uses.h"

namespace tilewire::network {
namespace {

bool IsOfSecondMatrix(const Operation& operation, const Network& network) {
  const auto* gradient = std::get_if<MatmulGradient>(&operation.params);
  return gradient != nullptr && gradient->by_second &&
         network.values[operation.dst].dims.size() == 2;
}

// A whole tensor with zeros before and after it along one axis.
struct Padded {
  ValueId src = kNoValue;
  int axis = 0;
  int64_t begin = 0, size = 0;
};

// Where the runs take all of `size` elements, once, between elements that are not in the source.
std::optional<int64_t> BeginOfWhole(const std::vector<IndexRun>& runs, int64_t size) {
  int64_t before = 0, taken = 0, begin = -1;
  for (const IndexRun& run : runs) {
    if (run.start >= 0) {
      const bool is_whole = run.start == 0 && run.count == size && (run.step == 1 || size == 1);
      if (!is_whole || ++taken > 1) return std::nullopt;
      begin = before;
    }
    before += run.count;
  }
  return taken == 1 ? std::optional(begin) : std::nullopt;
}

std::optional<Padded> PaddedBy(const Operation& operation, const Network& network) {
  const auto* select = std::get_if<Select>(&operation.params);
  if (select == nullptr || select->fill != 0) return std::nullopt;
  const ValueId src = operation.srcs[0];
  Padded padded{.src = src, .axis = -1};
  for (size_t d = 0; d < select->from.size(); ++d) {
    if (select->from[d].empty()) continue;
    if (padded.axis >= 0) return std::nullopt;
    padded.axis = static_cast<int>(d);
    padded.size = network.values[src].dims[d];
    const std::optional<int64_t> begin = BeginOfWhole(select->from[d], padded.size);
    if (!begin) return std::nullopt;
    padded.begin = *begin;
  }
  return padded.axis >= 0 ? std::optional(padded) : std::nullopt;
}

const Operation* ComputedBy(ValueId value, size_t first, const Network& network) {
  for (size_t i = network.operations.size(); i-- > first;)
    if (network.operations[i].dst == value) return &network.operations[i];
  return nullptr;
}

std::vector<int> UsesOf(const Network& network, const std::vector<ValueId>& kept) {
  std::vector<int> uses = ValueUses(network);
  for (ValueId value : kept) {
    if (value != kNoValue) ++uses[value];
  }
  return uses;
}

bool IsOfRelu(const Operation& operation) {
  const auto* gradient = std::get_if<ActivationGradient>(&operation.params);
  return gradient != nullptr && gradient->from_result &&
         gradient->op.function == functions::EltwiseAlgorithm::kRelu && gradient->op.alpha == 0;
}

// The pooling among the forward operations that saved `places` of `src`; null if none did.
const Operation* SavedBy(ValueId places, ValueId src, size_t first, const Network& network) {
  for (size_t i = 0; i < first; ++i) {
    const Operation& operation = network.operations[i];
    if (std::holds_alternative<Pooling>(operation.params) && operation.srcs[0] == src &&
        !operation.more_dsts.empty() && operation.more_dsts[0] == places)
      return &operation;
  }
  return nullptr;
}

}  // namespace

void ExchangePooledRelus(size_t first, const std::vector<ValueId>& kept, Network* network) {
  std::vector<Operation>& operations = network->operations;
  const std::vector<int> uses = UsesOf(*network, kept);
  std::vector<size_t> poolings(network->values.size(), operations.size());  // by their results
  for (size_t i = first; i < operations.size(); ++i) {
    Operation& relu = operations[i];
    if (std::holds_alternative<PoolingGradient>(relu.params) && relu.srcs.size() == 2)
      poolings[relu.dst] = i;
    const ValueId between = relu.srcs.empty() ? kNoValue : relu.srcs[0];
    if (!IsOfRelu(relu) || poolings[between] == operations.size() || uses[between] != 1) continue;
    Operation& pooling = operations[poolings[between]];
    const ValueId places = pooling.srcs[1];
    const Operation* const forward = SavedBy(places, relu.srcs[1], first, *network);
    if (forward == nullptr) continue;
    std::swap(relu.name, pooling.name);
    // Swapping variants compiles a function for each pair of operations: 4 MB.
    const ActivationGradient mask = std::get<ActivationGradient>(relu.params);
    relu.params = std::get<PoolingGradient>(pooling.params);
    pooling.params = mask;
    pooling.srcs = {pooling.srcs[0], forward->dst};
    relu.srcs = {between, places};
    network->values[between].dims = network->values[forward->dst].dims;
  }
}

void ExchangeTransposedGradients(size_t first, const std::vector<ValueId>& kept, Network* network) {
  std::vector<Operation>& operations = network->operations;
  const std::vector<int> uses = UsesOf(*network, kept);
  std::vector<size_t> products(network->values.size(), operations.size());  // by their results
  for (size_t i = first; i < operations.size(); ++i) {
    Operation& operation = operations[i];
    if (IsOfSecondMatrix(operation, *network)) products[operation.dst] = i;
    if (!std::holds_alternative<Transpose>(operation.params)) continue;
    const size_t product = products[operation.srcs[0]];
    const bool turns = std::get<Transpose>(operation.params).order == std::vector<int>{1, 0};
    if (product == operations.size() || !turns || uses[operation.srcs[0]] != 1) continue;
    const std::vector<ValueId>& sides = operations[product].srcs;
    operation.params = MatmulGradient{.by_second = true};
    operation.srcs = {sides[1], sides[0]};
  }
}

std::optional<Pieces> PiecesOf(absl::Span<const ValueId> gradients, size_t first,
                               const Network& network) {
  std::map<int64_t, Padded> by_begin;
  for (ValueId gradient : gradients) {
    const Operation* const operation = ComputedBy(gradient, first, network);
    const std::optional<Padded> padded =
        operation == nullptr ? std::nullopt : PaddedBy(*operation, network);
    if (!padded || (!by_begin.empty() && by_begin.begin()->second.axis != padded->axis) ||
        !by_begin.emplace(padded->begin, *padded).second)
      return std::nullopt;
  }
  Pieces pieces{.axis = by_begin.begin()->second.axis};
  int64_t end = 0;
  for (const auto& [begin, padded] : by_begin) {
    if (begin != end) return std::nullopt;
    end = begin + padded.size;
    pieces.values.push_back(padded.src);
  }
  const Dims& whole = network.values[gradients[0]].dims;
  return end == whole[pieces.axis] ? std::optional(pieces) : std::nullopt;
}

}  // namespace tilewire::network
