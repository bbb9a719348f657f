// SPDX-License-Identifier: Apache-2.0
//
// Layers of recurrent networks. Requests bring [batch, steps, inputs].
#include "tests/engine/lowering/network_builder.h"
#include "tests/engine/lowering/networks.h"

namespace tilewire::network {
namespace {

using functions::EltwiseAlgorithm;
using functions::RnnCell;
using functions::RnnDirection;
using Role = Rnn::Role;

struct Sizes {
  int64_t inputs, states;
};

Weights KnownNumbers(const std::string& name, const Dims& dims, float range) {
  const int64_t count = *ElementCount(dims);
  Weights weights;
  weights.key = name;
  weights.dims = dims;
  const ConstantPtr constant = MakeFloats(name, dims, PseudoRandom(name, count, -range, range));
  weights.data = constant->floats;
  weights.owner = constant;
  return weights;
}

// A layer with known weights; its source comes first in `roles`.
Rnn LayerOf(const std::string& name, RnnCell cell, RnnDirection direction, const Sizes& sizes) {
  const int64_t directions = functions::DirectionsOf(direction), gates = functions::GatesOf(cell);
  Rnn rnn;
  rnn.cell = cell;
  rnn.direction = direction;
  rnn.roles = {Role::kLayer};
  for (int64_t d = 0; d < directions; ++d) {
    if (cell != RnnCell::kVanillaRnn) rnn.activations.push_back({EltwiseAlgorithm::kLogistic});
    rnn.activations.resize((d + 1) * functions::ActivationsOf(cell), {EltwiseAlgorithm::kTanh});
  }
  const auto add = [&](Role role, const std::string& part, const Dims& dims, float range) {
    rnn.known.emplace_back(role, KnownNumbers(name + part, dims, range));
  };
  add(Role::kWeightsLayer, "/w", {1, directions, sizes.inputs, gates, sizes.states}, 0.3f);
  add(Role::kWeightsIter, "/r", {1, directions, sizes.states, gates, sizes.states}, 0.2f);
  add(Role::kBias, "/b", {1, directions, functions::BiasGatesOf(cell), sizes.states}, 0.5f);
  return rnn;
}

// Two bidirectional layers as in a recogniser of text, the second with its last states.
Network Lstms(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 6, 12});
  const ValueId steps = b.Transposed("steps", x, {1, 0, 2});
  const auto both = RnnDirection::kBidirectionalConcat;
  const ValueId first = b.AddOperation("first", LayerOf("first", RnnCell::kLstm, both, {12, 20}),
                                       {steps}, {6, n, 40});
  Rnn layer = LayerOf("second", RnnCell::kLstm, both, {40, 16});
  layer.gives_iter = layer.gives_iter_c = true;
  const ValueId second = b.AddOperation("second", layer, {first}, {8, n, 32});
  return b.Finish({b.Transposed("y", second, {1, 0, 2}), b.Transposed("z", first, {1, 0, 2})});
}

// Sequences of their own lengths, from a state, both ways of a gru.
Network Grus(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 5, 9});
  const ValueId steps = b.Transposed("steps", x, {1, 0, 2});
  const ValueId first = b.AddOperation("state", Select{{{}, {{0, 1, 1}}, {}}}, {x}, {n, 1, 9});
  const ValueId state = b.Reshaped("states", first, {1, 1, n, 9});
  std::vector<int64_t> counts;
  for (int64_t i = 0; i < n; ++i) counts.push_back((i * 3 + 2) % 6);
  const ValueId lengths =
      b.AddOperation("lengths", Literal{MakeInts("lengths", {n}, counts)}, {}, {n}, DataType::kS32);
  std::vector<ValueId> outputs;
  for (const RnnCell cell : {RnnCell::kGru, RnnCell::kLbrGru, RnnCell::kVanillaRnn}) {
    const std::string name(AlgorithmName(cell));
    Rnn layer = LayerOf(name, cell, RnnDirection::kRightToLeft, {9, 9});
    layer.roles = {Role::kLayer, Role::kIter, Role::kSequenceLengths};
    layer.gives_iter = true;
    layer.clip = 2;
    const ValueId y = b.AddOperation(name, layer, {steps, state, lengths}, {6, n, 9});
    outputs.push_back(b.Transposed(name + "/y", y, {1, 0, 2}));
  }
  return b.Finish(outputs);
}

// Weights that a run brings, peepholes and coupled gates.
Network Peepholes(int64_t n) {
  NetworkBuilder b;
  const ValueId x = b.Input("x", {n, 4, 7});
  const ValueId steps = b.Transposed("steps", x, {1, 0, 2});
  Rnn layer = LayerOf("layer", RnnCell::kLstm, RnnDirection::kLeftToRight, {7, 10});
  layer.known.erase(layer.known.begin());
  layer.known.emplace_back(Role::kPeephole, KnownNumbers("peephole", {1, 1, 3, 10}, 0.5f));
  layer.roles.push_back(Role::kWeightsLayer);
  layer.couples_gates = true;
  const ValueId weights = b.Elementwise("weights", b.Numbers("numbers", {1, 1, 7, 4, 10}),
                                        {EltwiseAlgorithm::kLinear, 0.25f, 0});
  const ValueId y = b.AddOperation("layer", layer, {steps, weights}, {4, n, 10});
  return b.Finish({b.Transposed("y", y, {1, 0, 2})});
}

}  // namespace

absl::Span<const NetworkCase> RecurrentNetworks() {
  static constexpr NetworkCase kCases[] = {
      {"Lstms", Lstms}, {"Grus", Grus}, {"Peepholes", Peepholes}};
  return kCases;
}

}  // namespace tilewire::network
