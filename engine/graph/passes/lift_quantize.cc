// SPDX-License-Identifier: Apache-2.0
//
// Rounding to a grid commutes with putting tensors behind each other: the concatenation then moves
// bytes, and whoever computes a source may write them.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/graph/passes/editor.h"
#include "engine/graph/passes/passes.h"

namespace tilewire::graph {
namespace {

struct Lift {
  int concat = Editor::kNone, quantize = Editor::kNone;
};

std::vector<Lift> FindLifts(Network* network) {
  Editor editor(network);
  std::vector<Lift> lifts;
  for (int i = 0; i < editor.size(); ++i) {
    const Quantize* quantize = editor.As<Quantize>(i);
    if (quantize == nullptr || quantize->grids.size() != 1) continue;
    const ValueId real = editor.operation(i).srcs[0];
    const int before = editor.producer(real);
    if (editor.As<Concat>(before) == nullptr || editor.use_count(real) != 1) continue;
    lifts.push_back({before, i});
  }
  return lifts;
}

// A Quantize of the same kind for each source, and the concatenation of their results.
std::vector<Operation> Lifted(const Operation& concat, const Operation& quantize,
                              Network* network) {
  std::vector<Operation> operations;
  const DataType type = network->values[quantize.dst].type;
  Operation whole{concat.name, concat.params, {}, quantize.dst};
  for (ValueId src : concat.srcs) {
    const Value& real = network->values[src];
    Value integers{absl::StrCat(real.name, "/", quantize.name), type, real.dims};
    const ValueId part = static_cast<ValueId>(network->values.size());
    network->values.push_back(std::move(integers));
    operations.push_back({quantize.name, quantize.params, {src}, part});
    whole.srcs.push_back(part);
  }
  operations.push_back(std::move(whole));
  return operations;
}

}  // namespace

void LiftQuantize(Network* network) {
  const std::vector<Lift> lifts = FindLifts(network);
  std::vector<std::vector<Operation>> instead(network->operations.size());
  std::vector<bool> changed(network->operations.size(), false);
  for (const Lift& lift : lifts) {
    instead[lift.concat] =
        Lifted(network->operations[lift.concat], network->operations[lift.quantize], network);
    changed[lift.concat] = changed[lift.quantize] = true;
  }
  std::vector<Operation> operations;
  for (size_t i = 0; i < changed.size(); ++i) {
    if (!changed[i]) operations.push_back(std::move(network->operations[i]));
    for (Operation& operation : instead[i]) operations.push_back(std::move(operation));
  }
  network->operations = std::move(operations);
}

}  // namespace tilewire::graph
