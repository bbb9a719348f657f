// SPDX-License-Identifier: Apache-2.0
//
// min(max(x + 3, 0), 6) / 6, as exporters spell it, is hard_sigmoid(x), and x times it
// hard_swish(x): the gates of squeeze-and-excite and of its successors' activations.
#include <cmath>
#include <optional>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

using functions::EltwiseAlgorithm;

// The operation that computes `value`, if it is this function.
const Activation* FunctionOf(Editor& editor, ValueId value, EltwiseAlgorithm algorithm) {
  const Activation* activation = editor.As<Activation>(editor.producer(value));
  return activation != nullptr && activation->op.function == algorithm ? activation : nullptr;
}

// A value that is min(max(alpha * x + beta, 0), bound).
struct BoundedLinear {
  ValueId x = kNoValue;
  float alpha = 1, beta = 0, bound = 1;
};

std::optional<BoundedLinear> BoundedLinearOf(Editor& editor, ValueId value) {
  const Activation* bounded = FunctionOf(editor, value, EltwiseAlgorithm::kBoundedRelu);
  if (bounded == nullptr) return std::nullopt;
  const ValueId sum = editor.operation(editor.producer(value)).srcs[0];
  const Activation* linear = FunctionOf(editor, sum, EltwiseAlgorithm::kLinear);
  if (linear == nullptr) return std::nullopt;
  return BoundedLinear{editor.operation(editor.producer(sum)).srcs[0], linear->op.alpha,
                       linear->op.beta, bounded->op.alpha};
}

// The same of a product of x and such a value, and that it is such a product.
std::optional<BoundedLinear> GatedProductOf(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const Elementwise* product = editor.As<Elementwise>(op);
  if (product == nullptr || product->function != Elementwise::Function::kMul) return std::nullopt;
  const std::vector<ValueId>& srcs = editor.operation(op).srcs;
  for (int g = 0; g < 2; ++g) {
    const std::optional<BoundedLinear> gate = BoundedLinearOf(editor, srcs[g]);
    if (gate && gate->x == srcs[1 - g]) return gate;
  }
  return std::nullopt;
}

void FuseAt(Editor& editor, int op) {
  const Activation* last = editor.As<Activation>(op);
  if (last == nullptr) return;
  const bool scales = last->op.function == EltwiseAlgorithm::kLinear && last->op.beta == 0;
  const bool bounds = last->op.function == EltwiseAlgorithm::kBoundedRelu;
  if (!scales && !bounds) return;
  const ValueId unscaled = bounds ? editor.operation(op).dst : editor.operation(op).srcs[0];
  const float factor = bounds ? 1 : last->op.alpha;
  std::optional<BoundedLinear> gate = BoundedLinearOf(editor, unscaled);
  EltwiseAlgorithm function = EltwiseAlgorithm::kHardSigmoid;
  if (!gate && scales) {
    gate = GatedProductOf(editor, unscaled);
    function = EltwiseAlgorithm::kHardSwish;
  }
  if (!gate || std::abs(gate->bound * factor - 1) > 1e-6) return;
  editor.SetSources(op, {gate->x});
  editor.operation(op).params = Activation{{function, gate->alpha * factor, gate->beta * factor}};
}

}  // namespace

void FuseHardSigmoid(Network* network) {
  {
    Editor editor(network);
    for (int op = 0; op < editor.size(); ++op) FuseAt(editor, op);
  }
  // Operations inside the patterns are no longer used.
  RemoveDead(network);
}

}  // namespace tilewire::network
