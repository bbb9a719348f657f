// SPDX-License-Identifier: Apache-2.0
//
// x * hard_sigmoid(x) is hard_swish(x), x * logistic(x) is swish(x): one function, which the
// operation that computes x can take as its own.
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// The function of x that `gate` * x is, if the operation computes a gate of x.
std::optional<functions::EltwiseOp> GatedBy(const Activation& gate) {
  if (gate.op.function == EltwiseAlgorithm::kHardSigmoid)
    return functions::EltwiseOp{EltwiseAlgorithm::kHardSwish, gate.op.alpha, gate.op.beta};
  if (gate.op.function == EltwiseAlgorithm::kLogistic)
    return functions::EltwiseOp{EltwiseAlgorithm::kSwish, 1, 0};
  return std::nullopt;
}

}  // namespace

void FuseSwish(Network* network) {
  Editor editor(network);
  for (int i = 0; i < editor.size(); ++i) {
    if (editor.SourcesOf(i, Function::kMul) == nullptr) continue;
    for (int g = 0; g < 2; ++g) {
      const std::vector<ValueId> srcs = editor.operation(i).srcs;
      const int before = editor.producer(srcs[g]);
      const Activation* gate = editor.As<Activation>(before);
      if (gate == nullptr || editor.operation(before).srcs[0] != srcs[1 - g]) continue;
      const std::optional<functions::EltwiseOp> op = GatedBy(*gate);
      if (!op) continue;
      editor.SetSources(i, {srcs[1 - g]});
      editor.operation(i).params = Activation{*op};
      if (editor.use_count(srcs[g]) == 0) editor.Remove(before);
      break;
    }
  }
}

}  // namespace tilewire::network
