// SPDX-License-Identifier: Apache-2.0
//
// x / 2 * (1 + erf(x / sqrt(2))), in the orders in which exporters write its factors, is one
// function, which the operation that computes x can take as its own.
#include <cmath>
#include <optional>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

bool Near(float a, double b) { return std::abs(a - b) <= 1e-6; }

// The x of `value` = alpha * x + beta.
std::optional<ValueId> LinearOf(Editor& editor, ValueId value, double alpha, double beta) {
  const int op = editor.producer(value);
  const functions::EltwiseOp* linear = editor.FunctionOf(op, EltwiseAlgorithm::kLinear);
  if (linear == nullptr || !Near(linear->alpha, alpha) || !Near(linear->beta, beta))
    return std::nullopt;
  return editor.operation(op).srcs[0];
}

// The x of `value` = erf(x / sqrt(2)).
std::optional<ValueId> ErfOf(Editor& editor, ValueId value) {
  const std::vector<ValueId>* srcs = editor.SourcesOf(editor.producer(value), Function::kErf);
  return srcs != nullptr ? LinearOf(editor, (*srcs)[0], M_SQRT1_2, 0) : std::nullopt;
}

// The x of `value` = factor * (1 + erf(x / sqrt(2))).
std::optional<ValueId> GateOf(Editor& editor, ValueId value, double factor) {
  if (const auto erf = LinearOf(editor, value, factor, factor)) return ErfOf(editor, *erf);
  if (factor == 1) return std::nullopt;
  const auto unscaled = LinearOf(editor, value, factor, 0);
  return unscaled ? GateOf(editor, *unscaled, 1) : std::nullopt;
}

// The x of a product x * gate, whose factor of 1/2 is in either, or still to come.
std::optional<ValueId> ProductOf(Editor& editor, int op, bool halved) {
  const std::vector<ValueId>* srcs = editor.SourcesOf(op, Function::kMul);
  if (srcs == nullptr) return std::nullopt;
  for (int g = 0; g < 2; ++g) {
    const ValueId gate = (*srcs)[g], other = (*srcs)[1 - g];
    const std::optional<ValueId> x = GateOf(editor, gate, 1);
    if (!halved && x && *x == other) return x;
    if (!halved) continue;
    if (x && LinearOf(editor, other, 0.5, 0) == x) return x;
    if (GateOf(editor, gate, 0.5) == std::optional<ValueId>(other)) return other;
  }
  return std::nullopt;
}

}  // namespace

void FuseGelu(Network* network) {
  ForEachOperation(network, [](Editor& editor, int op) {
    std::optional<ValueId> x = ProductOf(editor, op, /*halved=*/true);
    if (!x && editor.As<Activation>(op) != nullptr) {
      const auto product = LinearOf(editor, editor.operation(op).dst, 0.5, 0);
      if (product) x = ProductOf(editor, editor.producer(*product), /*halved=*/false);
    }
    if (!x) return;
    editor.SetSources(op, {*x});
    editor.operation(op).params = Activation{{EltwiseAlgorithm::kGeluErf, 0, 0}};
  });
  // The factors no longer use x.
  RemoveDead(network);
}

}  // namespace tilewire::network
