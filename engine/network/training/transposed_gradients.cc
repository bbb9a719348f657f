// SPDX-License-Identifier: Apache-2.0
#include "engine/network/training/transposed_gradients.h"

#include <utility>
#include <variant>
#include <vector>

#include "engine/network/value_uses.h"

namespace tilewire::network {
namespace {

bool IsOfSecondMatrix(const Operation& operation, const Network& network) {
  const auto* gradient = std::get_if<MatmulGradient>(&operation.params);
  return gradient != nullptr && gradient->by_second &&
         network.values[operation.dst].dims.size() == 2;
}

}  // namespace

void ExchangeTransposedGradients(size_t first, const std::vector<ValueId>& kept, Network* network) {
  std::vector<Operation>& operations = network->operations;
  std::vector<int> uses = ValueUses(*network);
  for (ValueId value : kept) {
    if (value != kNoValue) ++uses[value];
  }
  std::vector<size_t> products(network->values.size(), operations.size());  // by their results
  std::vector<bool> is_dropped(operations.size(), false);
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
    is_dropped[product] = true;
  }
  size_t end = first;
  for (size_t i = first; i < operations.size(); ++i) {
    if (is_dropped[i]) continue;
    if (end != i) operations[end] = std::move(operations[i]);
    ++end;
  }
  operations.resize(end);
}

}  // namespace tilewire::network
