// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/element_bounds.h"

#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace tilewire {
namespace {

using network::Network;
using network::Operation;
using network::ValueId;

// Whether dst has the elements of src, all of them, whatever their order and type.
bool Moves(const Operation& operation) {
  const auto* convert = std::get_if<network::Convert>(&operation.params);
  return (convert != nullptr && convert->via.empty()) ||
         std::holds_alternative<network::Reshape>(operation.params) ||
         std::holds_alternative<network::Transpose>(operation.params);
}

// The value that `value` has the elements of.
ValueId OriginOf(ValueId value, const Network& network) {
  for (auto operation = network.operations.rbegin(); operation != network.operations.rend();
       ++operation) {
    if (operation->dst == value && Moves(*operation)) value = operation->srcs[0];
  }
  return value;
}

// The place of the value among the network's inputs; -1: it is none.
int InputOf(ValueId value, const Network& network) {
  const auto found = absl::c_find(network.inputs, value);
  return found == network.inputs.end() ? -1 : static_cast<int>(found - network.inputs.begin());
}

// The bounds of the indices that an operation takes from an input.
ElementBounds OfIndices(const Operation& operation, const network::Gather& gather, int input,
                        const Network& network) {
  const int64_t size = network.values[operation.srcs[0]].dims[gather.axis];
  return {.tensor = input,
          .least = -size,
          .most = size - 1,
          .reason = absl::StrCat("'", operation.name.substr(0, 200), "' takes one of ", size,
                                 " by its index")};
}

// The bounds of the classes that a loss takes.
ElementBounds OfClasses(const Operation& operation, const network::Loss& loss, int target,
                        const Network& network) {
  const network::Value& output = network.values[operation.srcs[0]];
  return {.is_target = true,
          .tensor = target,
          .least = 0,
          .most = output.dims[1] - 1,
          .besides = loss.ignore_index,
          .reason = absl::StrCat("output '", output.name, "' has ", output.dims[1], " classes")};
}

}  // namespace

std::vector<ElementBounds> BoundsOfElements(const Network& network, int inputs) {
  std::vector<ElementBounds> bounds;
  int target = 0;
  for (const Operation& operation : network.operations) {
    if (const auto* gather = std::get_if<network::Gather>(&operation.params)) {
      const int input = InputOf(OriginOf(operation.srcs[1], network), network);
      if (input >= 0 && input < inputs)
        bounds.push_back(OfIndices(operation, *gather, input, network));
    }
    if (const auto* loss = std::get_if<network::Loss>(&operation.params)) {
      if (network.values[operation.srcs[1]].type != DataType::kF32)
        bounds.push_back(OfClasses(operation, *loss, target, network));
      ++target;
    }
  }
  return bounds;
}

}  // namespace tilewire
