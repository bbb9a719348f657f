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

// A value that is min(max(alpha * x + beta, 0), bound).
struct BoundedLinear {
  ValueId x = kNoValue;
  float alpha = 1, beta = 0, bound = 1;
};

std::optional<BoundedLinear> BoundedLinearOf(Editor& editor, ValueId value) {
  const int last = editor.producer(value);
  const functions::EltwiseOp* bounded = editor.FunctionOf(last, EltwiseAlgorithm::kBoundedRelu);
  if (bounded == nullptr) return std::nullopt;
  const int sum = editor.producer(editor.operation(last).srcs[0]);
  const functions::EltwiseOp* linear = editor.FunctionOf(sum, EltwiseAlgorithm::kLinear);
  if (linear == nullptr) return std::nullopt;
  return BoundedLinear{editor.operation(sum).srcs[0], linear->alpha, linear->beta, bounded->alpha};
}

// The same of a product of x and such a value, and that it is such a product.
std::optional<BoundedLinear> GatedProductOf(Editor& editor, ValueId value) {
  const auto* srcs = editor.SourcesOf(editor.producer(value), Function::kMul);
  for (int g = 0; srcs != nullptr && g < 2; ++g) {
    const std::optional<BoundedLinear> gate = BoundedLinearOf(editor, (*srcs)[g]);
    if (gate && gate->x == (*srcs)[1 - g]) return gate;
  }
  return std::nullopt;
}

void FuseAt(Editor& editor, int op) {
  const std::optional<float> scale = editor.FactorOf(op);
  const bool scales = scale.has_value();
  if (!scales && editor.FunctionOf(op, EltwiseAlgorithm::kBoundedRelu) == nullptr) return;
  const ValueId unscaled = scales ? editor.operation(op).srcs[0] : editor.operation(op).dst;
  const float factor = scale.value_or(1);
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
  ForEachOperation(network, FuseAt);
  // Operations inside the patterns are no longer used.
  RemoveDead(network);
}

}  // namespace tilewire::network
