// SPDX-License-Identifier: Apache-2.0
//
// A Quantize, and a Relu before it, commute with a concatenation. If they come first, the
// concatenation moves bytes, and the operations that compute its sources may write them directly.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

struct Lift {
  int concat = Editor::kNone;
  std::vector<int> behind;  // a Relu or none, and the Quantize
};

std::vector<Lift> FindLifts(Network* network) {
  Editor editor(network);
  std::vector<Lift> lifts;
  for (int i = 0; i < editor.size(); ++i) {
    const Quantize* quantize = editor.As<Quantize>(i);
    if (quantize == nullptr || quantize->params.size() != 1) continue;
    Lift lift{.behind = {i}};
    ValueId real = editor.operation(i).srcs[0];
    if (const int op = SoleRelu(editor, real); op != Editor::kNone) {
      lift.behind.insert(lift.behind.begin(), op);
      real = editor.operation(op).srcs[0];
    }
    lift.concat = editor.producer(real);
    if (editor.As<Concat>(lift.concat) == nullptr || editor.use_count(real) != 1) continue;
    lifts.push_back(std::move(lift));
  }
  return lifts;
}

// The operations that followed the concatenation, once per source, and the new concatenation.
std::vector<Operation> Lifted(const Lift& lift, Network* network) {
  const Operation& concat = network->operations[lift.concat];
  std::vector<Operation> operations;
  Operation whole{concat.name, concat.params, {}, network->operations[lift.behind.back()].dst};
  for (ValueId src : concat.srcs) {
    for (int i : lift.behind) {
      const Operation& behind = network->operations[i];
      const Value& value = network->values[src];
      Value part{absl::StrCat(value.name, "/", behind.name), network->values[behind.dst].type,
                 value.dims};
      const ValueId dst = static_cast<ValueId>(network->values.size());
      network->values.push_back(std::move(part));
      operations.push_back({behind.name, behind.params, {src}, dst});
      src = dst;
    }
    whole.srcs.push_back(src);
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
    instead[lift.concat] = Lifted(lift, network);
    changed[lift.concat] = true;
    for (int i : lift.behind) changed[i] = true;
  }
  std::vector<Operation> operations;
  for (size_t i = 0; i < changed.size(); ++i) {
    if (!changed[i]) operations.push_back(std::move(network->operations[i]));
    for (Operation& operation : instead[i]) operations.push_back(std::move(operation));
  }
  network->operations = std::move(operations);
}

}  // namespace tilewire::network
